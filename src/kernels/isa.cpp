#include "kernels/isa.h"

#include <array>
#include <atomic>
#include <cstdlib>
#include <string_view>

#include "base/error.h"

namespace lockstep {
namespace detail {
#define LOCKSTEP_DECLARE(isa)               \
  namespace isa {                           \
  void fill_elementwise(Kernels& table);    \
  void fill_gelu(Kernels& table);           \
  void fill_layer_norm(Kernels& table);     \
  void fill_attention(Kernels& table);      \
  void fill_batch_norm(Kernels& table);     \
  void fill_pooling(Kernels& table);        \
  void fill_cross_entropy(Kernels& table);  \
  void fill_embedding(Kernels& table);      \
  void fill_decoding(Kernels& table);       \
  void fill_update(Kernels& table);         \
  void fill_sum(Kernels& table);            \
  void fill_packed_product(Kernels& table); \
  inline void fill(Kernels& table) {        \
    fill_elementwise(table);                \
    fill_gelu(table);                       \
    fill_layer_norm(table);                 \
    fill_attention(table);                  \
    fill_batch_norm(table);                 \
    fill_pooling(table);                    \
    fill_cross_entropy(table);              \
    fill_embedding(table);                  \
    fill_decoding(table);                   \
    fill_update(table);                     \
    fill_sum(table);                        \
    fill_packed_product(table);             \
  }                                         \
  }
LOCKSTEP_DECLARE(generic)
LOCKSTEP_DECLARE(avx2)
LOCKSTEP_DECLARE(avx512)
#undef LOCKSTEP_DECLARE
namespace avx512_dot {
void fill_packed_product(Kernels& table);
}
}  // namespace detail

namespace {

struct Tables {
  Kernels generic, avx2, avx512, avx512_dot;
  Tables() {
    detail::generic::fill(generic);
    detail::avx2::fill(avx2);
    detail::avx512::fill(avx512);
    generic.isa = "generic";
    avx2.isa = "avx2";
    avx512.isa = "avx512";
    avx512_dot = avx512;
#if defined(__x86_64__)
    detail::avx512_dot::fill_packed_product(avx512_dot);
#endif
    avx512_dot.isa = "avx512_dot";
  }
};

bool supports_avx2() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("f16c");
#else
  return false;
#endif
}

bool supports_avx512() {  // what -march=x86-64-v4 may use
#if defined(__x86_64__)
  return supports_avx2() && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

bool supports_avx512_dot() {  // products of bf16 pairs and of int8 quadruples
#if defined(__x86_64__)
  return supports_avx512() && __builtin_cpu_supports("avx512bf16") &&
         __builtin_cpu_supports("avx512vnni");
#else
  return false;
#endif
}

const Kernels& default_kernels() {
  const char* name = std::getenv("LOCKSTEP_ISA");
  if (name != nullptr && *name != 0) {
    const Kernels* table = kernels_for(name);
    if (table == nullptr) {
      throw ConfigError(
          "LOCKSTEP_ISA={}: expected generic, avx2, avx512 or avx512_dot, and one that this CPU "
          "supports",
          name);
    }
    return *table;
  }
  if (supports_avx512_dot()) return *kernels_for("avx512_dot");
  if (supports_avx512()) return *kernels_for("avx512");
  if (supports_avx2()) return *kernels_for("avx2");
  return *kernels_for("generic");
}

std::atomic<const Kernels*> forced{nullptr};

}  // namespace

const Kernels* kernels_for(const char* isa) {
  static const Tables tables;
  std::string_view name = isa;
  if (name == "generic") return &tables.generic;
  if (name == "avx2" && supports_avx2()) return &tables.avx2;
  if (name == "avx512" && supports_avx512()) return &tables.avx512;
  if (name == "avx512_dot" && supports_avx512_dot()) return &tables.avx512_dot;
  return nullptr;
}

const Kernels& kernels() {
  const Kernels* table = forced.load(std::memory_order_relaxed);
  if (table != nullptr) return *table;
  static const Kernels& chosen = default_kernels();
  return chosen;
}

void use_kernels(const Kernels* table) { forced.store(table); }

}  // namespace lockstep

#include "kernels/kernel_table.h"

// Fuzz targets have the generic kernels alone (cmake/InstructionSets.cmake).
#if defined(__x86_64__) && !defined(LOCKSTEP_GENERIC_ALONE)
#define LOCKSTEP_X86_64
#endif

#if defined(LOCKSTEP_X86_64) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include <fmt/ranges.h>

#include <atomic>
#include <cstdlib>
#include <string_view>

#include "base/error.h"

namespace lockstep {
namespace detail {
// The parts of a table: those that decoding needs, and, outside of the library that only decodes
// (cmake/Edge.cmake), those of training.
#define LOCKSTEP_DECODING_PARTS(F) \
  F(elementwise)                   \
  F(gelu) F(layer_norm) F(attention) F(embedding) F(decoding) F(packed_product) F(panel_packing)
#ifdef LOCKSTEP_DECODING_KERNELS
#define LOCKSTEP_PARTS(F) LOCKSTEP_DECODING_PARTS(F)
#else
#define LOCKSTEP_PARTS(F)    \
  LOCKSTEP_DECODING_PARTS(F) \
  F(batch_norm) F(pooling) F(cross_entropy) F(update) F(sum) F(image) F(winograd)
#endif
#define LOCKSTEP_DECLARE_PART(part) void fill_##part(Kernels& table);
#define LOCKSTEP_CALL_PART(part) fill_##part(table);
#define LOCKSTEP_DECLARE(isa)                                             \
  namespace isa {                                                         \
  LOCKSTEP_PARTS(LOCKSTEP_DECLARE_PART)                                   \
  inline void fill(Kernels& table) { LOCKSTEP_PARTS(LOCKSTEP_CALL_PART) } \
  }
LOCKSTEP_DECLARE(generic)
#ifdef LOCKSTEP_X86_64
LOCKSTEP_DECLARE(avx2)
LOCKSTEP_DECLARE(avx512)
namespace avx512_vnni {
void fill_packed_product(Kernels& table);
}
namespace avx512_dot {
void fill_attention(Kernels& table);
void fill_packed_product(Kernels& table);
void fill_winograd(Kernels& table);
}  // namespace avx512_dot
namespace amx {
void fill_attention(Kernels& table);
void fill_weight_gradient(Kernels& table);
void fill_tile_convolution(Kernels& table);
}  // namespace amx
#elif defined(__aarch64__)
namespace neon_dot {
void fill_packed_product(Kernels& table);
}
#endif
#undef LOCKSTEP_DECLARE
#undef LOCKSTEP_DECLARE_PART
#undef LOCKSTEP_CALL_PART
#undef LOCKSTEP_PARTS
#undef LOCKSTEP_DECODING_PARTS
}  // namespace detail

namespace {

#ifdef LOCKSTEP_X86_64
bool supports_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("f16c");
}

bool supports_avx512() {  // the instructions that -march=x86-64-v4 may use
  return supports_avx2() && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

bool supports_avx512_vnni() {  // dot products of int8 quadruples
  return supports_avx512() && __builtin_cpu_supports("avx512vnni");
}

bool supports_avx512_dot() {  // those, and of bf16 pairs
  return supports_avx512_vnni() && __builtin_cpu_supports("avx512bf16");
}

// AMX multiplies bf16 tiles. Its registers are large: Linux grants them only
// to a process that asks.
bool supports_amx() {
#ifdef __linux__
  constexpr int kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XTILEDATA
  static const bool granted = supports_avx512_dot() && __builtin_cpu_supports("amx-tile") &&
                              __builtin_cpu_supports("amx-bf16") &&
                              syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return granted;
#else
  return false;
#endif
}
#elif defined(__aarch64__)
bool supports_neon_dot() {  // dot products of int8 quadruples
#ifdef __linux__
  return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#else
  return false;
#endif
}
#endif

// Tables of what this CPU supports; the others stay empty, for the functions that fill them are
// made of the same instructions as the kernels.
struct Tables {
  Kernels generic{}, avx2{}, avx512{}, avx512_vnni{}, avx512_dot{}, amx{}, neon_dot{};
  Tables() {
    detail::generic::fill(generic);
    generic.isa = "generic";
#ifdef LOCKSTEP_X86_64
    if (supports_avx2()) fill_avx2();
    if (supports_avx512()) fill_avx512();
    if (supports_avx512_vnni()) fill_avx512_vnni();
    if (supports_avx512_dot()) fill_avx512_dot();
    if (supports_amx()) fill_amx();
#elif defined(__aarch64__)
    if (supports_neon_dot()) fill_neon_dot();
#endif
  }

#ifdef LOCKSTEP_X86_64
  void fill_avx2() {
    detail::avx2::fill(avx2);
    avx2.isa = "avx2";
  }
  void fill_avx512() {
    detail::avx512::fill(avx512);
    avx512.isa = "avx512";
  }
  void fill_avx512_vnni() {
    avx512_vnni = avx512;
    detail::avx512_vnni::fill_packed_product(avx512_vnni);
    avx512_vnni.isa = "avx512_vnni";
  }
  void fill_avx512_dot() {
    avx512_dot = avx512;
    detail::avx512_dot::fill_packed_product(avx512_dot);
    detail::avx512_dot::fill_attention(avx512_dot);
#ifndef LOCKSTEP_DECODING_KERNELS
    detail::avx512_dot::fill_winograd(avx512_dot);
#endif
    avx512_dot.isa = "avx512_dot";
    avx512_dot.fast_bf16 = !__builtin_cpu_is("intel");
  }
  void fill_amx() {
    amx = avx512_dot;
#ifndef LOCKSTEP_DECODING_KERNELS
    detail::amx::fill_attention(amx);
    detail::amx::fill_weight_gradient(amx);
    detail::amx::fill_tile_convolution(amx);
#endif
    amx.isa = "amx";
  }
#elif defined(__aarch64__)
  void fill_neon_dot() {
    neon_dot = generic;
    detail::neon_dot::fill_packed_product(neon_dot);
    neon_dot.isa = "neon_dot";
  }
#endif
};

const Kernels& default_kernels() {
  const char* name = std::getenv("LOCKSTEP_ISA");
  if (name != nullptr && *name != 0) {
    const Kernels* table = kernels_for(name);
    if (table == nullptr) {
      throw ConfigError("LOCKSTEP_ISA={}: expected one of {}, and one that this CPU supports", name,
                        fmt::join(kInstructionSets, ", "));
    }
    return *table;
  }
  const Kernels* best = nullptr;
  for (const char* isa : kInstructionSets) {
    if (const Kernels* table = kernels_for(isa)) best = table;
  }
  return *best;
}

std::atomic<const Kernels*> forced{nullptr};

}  // namespace

const Kernels* kernels_for(const char* isa) {
  static const Tables tables;
  const std::string_view name = isa;
  for (const Kernels* table : {&tables.generic, &tables.avx2, &tables.avx512, &tables.avx512_vnni,
                               &tables.avx512_dot, &tables.amx, &tables.neon_dot}) {
    if (table->isa != nullptr && name == table->isa) return table;
  }
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

// Packs a matrix into the panels of packed_product.h. Where the inputs of an output lie side by
// side, groups of 4 bytes are transposed; where the outputs of an input do, they are copied.
#include "kernels/isa_math.h"
#include "kernels/packed_product.h"
#include "kernels/small_product_isa.h"

namespace lockstep {
namespace detail {
namespace LOCKSTEP_ISA {
namespace {

typedef uint32_t Group __attribute__((may_alias));

// Returns group `group` of output `output`, with zeros after the last input.
inline Group group_of(const PackPanelsArgs& a, const float* from, int64_t output, int64_t group) {
  return __builtin_bit_cast(uint32_t, from[output * a.output_stride + group * a.input_stride]);
}
inline Group group_of(const PackPanelsArgs& a, const Half* from, int64_t output, int64_t group) {
  const Half* pair = from + output * a.output_stride + 2 * group * a.input_stride;
  const uint32_t high = 2 * group + 1 < a.inputs ? pair[a.input_stride] : 0u;
  return pair[0] | high << 16;
}

struct PanelPart {  // the outputs [first, first + count) and all groups; to [groups, 64]
  int64_t first, count, groups;
  Group* to;
};

// For outputs that lie side by side: to[o] = f(low[o], high[o]) of a pair of rows, or of one row
// given twice.
template <class T, class F>
inline void copy_row(const T* low, const T* high, int64_t count, Group* to, const F& f) {
  if (count == kPanelOutputs) {
#pragma omp simd
    for (int64_t o = 0; o < kPanelOutputs; ++o) to[o] = f(low[o], high[o]);
    return;
  }
  for (int64_t o = 0; o < count; ++o) to[o] = f(low[o], high[o]);
  for (int64_t o = count; o < kPanelOutputs; ++o) to[o] = 0;
}
inline void copy_panel(const PackPanelsArgs& a, const float* from, const PanelPart& part) {
  for (int64_t g = 0; g < part.groups; ++g) {
    const float* row = from + g * a.input_stride + part.first;
    copy_row(row, row, part.count, part.to + g * kPanelOutputs,
             [](float x, float) { return __builtin_bit_cast(uint32_t, x); });
  }
}
inline void copy_panel(const PackPanelsArgs& a, const Half* from, const PanelPart& part) {
  for (int64_t g = 0; g < part.groups; ++g) {
    const Half* low = from + 2 * g * a.input_stride + part.first;
    copy_row(low, low + a.input_stride, part.count, part.to + g * kPanelOutputs,
             [](Half x, Half y) { return x | static_cast<uint32_t>(y) << 16; });
  }
}

// For inputs that lie side by side: transposes squares of groups; `row` is the distance of two
// outputs in groups.
inline void transpose_panel(const Group* from, int64_t row, const PanelPart& part) {
  for (int64_t g = 0; g < part.groups; g += kLanes) {
    for (int64_t o = 0; o < kPanelOutputs; o += kLanes) {
      transpose_square(reinterpret_cast<const float*>(from + (part.first + o) * row + g), row,
                       reinterpret_cast<float*>(part.to + g * kPanelOutputs + o), kPanelOutputs);
    }
  }
}

template <class T>
void pack(const PackPanelsArgs& a, int64_t begin, int64_t end) {
  constexpr int64_t kGroup = 4 / sizeof(T);  // inputs
  const T* from = static_cast<const T*>(a.from);
  const int64_t all = (a.inputs + kGroup - 1) / kGroup, whole = a.inputs / kGroup;
  for (int64_t panel = begin; panel < end; ++panel) {
    const int64_t first = panel * kPanelOutputs;
    PanelPart part{first, smaller(kPanelOutputs, a.outputs - first), 0,
                   static_cast<Group*>(a.panels) + panel * all * kPanelOutputs};
    if (a.output_stride == 1) {
      part.groups = whole;
      copy_panel(a, from, part);
    } else if (part.count == kPanelOutputs && a.input_stride == 1 &&
               a.output_stride % kGroup == 0) {
      part.groups = whole / kLanes * kLanes;
      transpose_panel(static_cast<const Group*>(a.from), a.output_stride / kGroup, part);
    }
    for (int64_t g = part.groups; g < all; ++g) {
      Group* to = part.to + g * kPanelOutputs;
      for (int64_t o = 0; o < part.count; ++o) to[o] = group_of(a, from, first + o, g);
      for (int64_t o = part.count; o < kPanelOutputs; ++o) to[o] = 0;
    }
  }
}

}  // namespace

void fill_panel_packing(Kernels& table) {
  table.packed_product.pack_fp32 = pack<float>;
  table.packed_product.pack_bf16 = pack<Half>;
}

}  // namespace LOCKSTEP_ISA
}  // namespace detail
}  // namespace lockstep

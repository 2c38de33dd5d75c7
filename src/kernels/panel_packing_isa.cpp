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

// The outputs [first, first + count), those of as many panels as make kPanelOutputs, and all
// groups.
struct PanelPart {
  int64_t first, count, groups;
  int64_t width, panel_size;  // outputs and groups of a panel
  Group* to;                  // [panels, groups, width]
};

// For outputs that lie side by side: to[o] = f(low[o], high[o]) of a pair of rows, or of one row
// given twice. Zeros fill up to the width.
template <class T, class F>
inline void copy_row(const T* low, const T* high, int64_t count, int64_t width, Group* to,
                     const F& f) {
  if (count == width && width % kLanes == 0) {
    for (int64_t begin = 0; begin < width; begin += kLanes) {
#pragma omp simd
      for (int64_t o = 0; o < kLanes; ++o) to[begin + o] = f(low[begin + o], high[begin + o]);
    }
    return;
  }
  for (int64_t o = 0; o < count; ++o) to[o] = f(low[o], high[o]);
  for (int64_t o = count; o < width; ++o) to[o] = 0;
}
template <class T, class F>
inline void copy_rows(const T* low, const T* high, int64_t group, const PanelPart& part,
                      const F& f) {
  Group* to = part.to + group * part.width;
  for (int64_t o = 0; o < part.count; o += part.width, to += part.panel_size) {
    copy_row(low + o, high + o, smaller(part.width, part.count - o), part.width, to, f);
  }
}
inline void copy_panels(const PackPanelsArgs& a, const float* from, const PanelPart& part) {
  for (int64_t g = 0; g < part.groups; ++g) {
    const float* row = from + g * a.input_stride + part.first;
    copy_rows(row, row, g, part, [](float x, float) { return __builtin_bit_cast(uint32_t, x); });
  }
}
inline void copy_panels(const PackPanelsArgs& a, const Half* from, const PanelPart& part) {
  for (int64_t g = 0; g < part.groups; ++g) {
    const Half* low = from + 2 * g * a.input_stride + part.first;
    copy_rows(low, low + a.input_stride, g, part,
              [](Half x, Half y) { return x | static_cast<uint32_t>(y) << 16; });
  }
}

// For inputs that lie side by side: transposes squares of groups; `row` is the distance of two
// outputs in groups.
inline void transpose_panels(const Group* from, int64_t row, const PanelPart& part) {
  for (int64_t g = 0; g < part.groups; g += kLanes) {
    for (int64_t o = 0; o < part.count; o += kLanes) {
      Group* to = part.to + o / part.width * part.panel_size + g * part.width + o % part.width;
      transpose_square(reinterpret_cast<const float*>(from + (part.first + o) * row + g), row,
                       reinterpret_cast<float*>(to), part.width);
    }
  }
}

template <class T>
void pack(const PackPanelsArgs& a, int64_t begin, int64_t end) {
  constexpr int64_t kGroup = 4 / sizeof(T);  // inputs
  const T* from = static_cast<const T*>(a.from);
  const int64_t all = (a.inputs + kGroup - 1) / kGroup, whole = a.inputs / kGroup;
  const int64_t width = a.panel_outputs, together = kPanelOutputs / width;
  for (int64_t panel = begin; panel < end; panel += together) {
    const int64_t first = panel * width;
    const int64_t filled = smaller(together, end - panel) * width;  // with the zeros at the end
    PanelPart part{first,       smaller(filled, a.outputs - first),
                   0,           width,
                   all * width, static_cast<Group*>(a.panels) + panel * all * width};
    if (a.output_stride == 1) {
      part.groups = whole;
      copy_panels(a, from, part);
    } else if (part.count == filled && width % kLanes == 0 && a.input_stride == 1 &&
               a.output_stride % kGroup == 0) {
      part.groups = whole / kLanes * kLanes;
      transpose_panels(static_cast<const Group*>(a.from), a.output_stride / kGroup, part);
    }
    for (int64_t o = 0; o < filled; ++o) {
      Group* to = part.to + o / width * part.panel_size + o % width;
      for (int64_t g = part.groups; g < all; ++g) {
        to[g * width] = o < part.count ? group_of(a, from, first + o, g) : 0;
      }
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

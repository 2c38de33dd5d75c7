#include "kernels/number_formats.h"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep {

bool NumberFormats::has(const std::string& precision) const {
  return precision == "bf16" ? bf16 : precision == "fp16" ? fp16 : true;
}

NumberFormats cpu_formats(std::string_view isa, bool fast_bf16) {
  NumberFormats out{.bf16 = fast_bf16, .fp16 = false, .why = ""};
  if (isa == "amx") {
    out.bf16 = true;  // by libtorch's products and our tiles
    out.why = "this CPU has amx_bf16";
  } else if (isa == "avx512_dot") {
    out.why = fast_bf16 ? "this CPU has avx512_bf16"
                        : "this CPU's avx512_bf16 is slower than fp32, and it has no amx_bf16";
  } else {
    out.why = fmt::format("this CPU ({}) has neither avx512_bf16 nor amx_bf16", isa);
  }
  return out;
}

NumberFormats gpu_formats(const std::string& name, int major, int minor) {
  NumberFormats out{.bf16 = major >= 8, .fp16 = major >= 7, .why = ""};
  out.why = fmt::format("the {} has compute capability {}.{}", name, major, minor);
  if (!out.bf16) out.why += out.fp16 ? ", bf16 needs 8.0" : ", fp16 needs 7.0 and bf16 8.0";
  return out;
}

PrecisionChoice choose_precision(const std::vector<NamedFormats>& all) {
  auto first_without = [&](const auto& has) {
    return std::find_if(all.begin(), all.end(),
                        [&](const NamedFormats& rank) { return !has(rank.formats); });
  };
  // Where a format is ruled out, the first who does so tells why.
  auto told_by = [&](const auto& rank) {
    return (rank == all.begin() ? "" : rank->name + ": ") + rank->formats.why;
  };
  const auto no_bf16 = first_without([](const NumberFormats& f) { return f.bf16; });
  if (no_bf16 == all.end()) return {"bf16", all.front().formats.why};
  const auto no_fp16 = first_without([](const NumberFormats& f) { return f.fp16; });
  if (no_fp16 == all.end()) return {"fp16", told_by(no_bf16)};
  const auto neither = first_without([](const NumberFormats& f) { return f.bf16 || f.fp16; });
  return {"fp32", told_by(neither == all.end() ? no_bf16 : neither)};
}

}  // namespace lockstep

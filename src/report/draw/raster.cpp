#include "report/draw/raster.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/program.h"
#include "base/text.h"

namespace lockstep {

namespace {

constexpr const char* kProgram = "rsvg-convert";

}  // namespace

bool can_rasterise() { return find_in_path(kProgram).has_value(); }

void rasterise(const fs::path& svg, const fs::path& png, double scale) {
  const ProgramEnd end = run_to_end(
      {kProgram, "--zoom", fmt::format("{}", scale), "--output", png.string(), svg.string()});
  if (end.status != 0) {
    throw MachineError("{}: cannot be drawn: {} says: {}", png.string(), kProgram, trim(end.said));
  }
}

}  // namespace lockstep

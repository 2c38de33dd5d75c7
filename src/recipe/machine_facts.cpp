#include "recipe/machine_facts.h"

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "base/host_usage.h"
#include "base/text.h"
#include "dist/collectives/cuda.h"
#include "kernels/kernel_table.h"
#include "train/parts/machine_speed.h"

namespace lockstep {

MachineFacts read_machine_facts() {
  MachineFacts out;
  HostUsage usage({.interface = "", .machine = false});
  const HostFigures host = usage.sample();
  out.cores = host.usable_cores;
  if (host.core_limit > 0) out.cores = std::min(out.cores, host.core_limit);
  out.memory_bytes = host.memory_bytes;
  out.available_bytes = host.available_bytes;
  out.gpus = usable_gpus();
  out.instructions = out.gpus > 0 ? "cuda" : kernels().isa;
  const std::string& isa = out.instructions;
  out.computes_bf16 = kernels().fast_bf16 || isa == "amx" || isa == "cuda";
  double loads[1] = {0};
  if (getloadavg(loads, 1) == 1) out.load = loads[0];
  const MachineSpeed speed = measure_machine(1.0);
  // When another program occupies the core of one thread, the other threads wait for it: products
  // on all cores may become twenty times as slow. The product on one core is measured in its own
  // CPU time.
  const double alone = out.busy() ? out.cores : 0;
  out.fp32_flops = std::max(speed.fp32_all, alone * speed.fp32_one);
  const double bf16 = std::max(speed.bf16_all, alone * speed.bf16_one);
  out.product_flops = out.computes_bf16 ? std::max(bf16, out.fp32_flops) : out.fp32_flops;
  return out;
}

std::string describe_machine(const MachineFacts& machine) {
  const std::string units =
      machine.gpus > 0 ? fmt::format("{} GPU{}", machine.gpus, machine.gpus == 1 ? "" : "s")
                       : fmt::format("{:g} core{} ({})", machine.cores,
                                     machine.cores == 1 ? "" : "s", machine.instructions);
  const std::string busy = machine.busy()
                               ? fmt::format(
                                     " were they idle (other programs keep them busy, load {:.1f}: "
                                     "the run will take longer)",
                                     machine.load)
                               : "";
  return fmt::format("{}, {} of memory, matrix products at {:.2g} TFLOP/s in {}{}", units,
                     short_bytes(static_cast<double>(machine.memory_bytes)),
                     machine.product_flops / 1e12, machine.computes_bf16 ? "bf16" : "fp32", busy);
}

}  // namespace lockstep

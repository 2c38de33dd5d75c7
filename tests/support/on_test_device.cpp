// lockstep with a device that is not the CPU in place of a GPU (test_device.h). At its end it tells
// what went to the device and back.
#include <torch/types.h>

#include <cstdio>
#include <string>

#include "commands/catalogue/catalogue.h"
#include "commands/computing/computing_commands.h"
#include "commands/shared/computing.h"
#include "commands/shared/exit_code.h"
#include "support/test_device.h"

int main(int argc, char** argv) {
  using namespace lockstep;
  set_computing(run_computing);
  add_test_device();
  if (std::string(argv[1]) == "touch") {  // as code would that takes a tensor there for the CPU's
    const auto there = torch::ones({1}, torch::Device(c10::DeviceType::PrivateUse1, 0));
    return static_cast<int>(*there.const_data_ptr<float>());
  }
  const int exit_code = exit_code_of([&] {
    return commands().get(argv[1])({argv + 2, argv + argc});
  });
  const DeviceTraffic t = device_traffic();
  std::fprintf(stderr,
               "test device: %ld copies in, %ld out, %ld waits, %ld bytes in, %ld out, "
               "%ld kernels, %ld attentions, %ld stream waits, %ld bytes at most\n",
               t.copies_in, t.copies_out, t.waits, t.bytes_in, t.bytes_out, t.kernels, t.attentions,
               t.stream_waits, t.most_bytes);
  return exit_code;
}

#include "commands/shared/exit_code.h"

#include <exception>
#include <filesystem>

#include "base/error.h"
#include "base/log.h"

namespace lockstep {

namespace {

int report(const Error& error) {
  end_progress();
  fmt::print(stderr, "error: {}\n", error.describe());
  return error.exit_code();
}

}  // namespace

int exit_code_of(const std::function<int()>& work) {
  try {
    return work();
  } catch (const Error& error) {
    return report(error);
  } catch (const std::filesystem::filesystem_error& error) {  // which names the file
    return report(MachineError("{}", error.what()));
  } catch (const std::exception& error) {
    end_progress();
    fmt::print(stderr, "internal error: {}\nthis is a bug of lockstep; please report it\n",
               error.what());
    return kExitInternal;
  }
}

}  // namespace lockstep

// lockstep with one more task, which only tests have: a task takes one file (line_task.h) and one
// line (the first of main).
#include "commands/catalogue/catalogue.h"
#include "commands/computing/computing_commands.h"
#include "commands/shared/computing.h"
#include "commands/shared/exit_code.h"
#include "support/line_task.h"
#include "tasks/catalogue.h"

int main(int argc, char** argv) {
  using namespace lockstep;
  set_computing(run_computing);
  add_task(
      "line", []() -> std::unique_ptr<Task> { return std::make_unique<LineTask>(); },
      "a line through points");
  return exit_code_of([&] { return commands().get(argv[1])({argv + 2, argv + argc}); });
}

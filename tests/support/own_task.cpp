// lockstep with one more task, which only tests have: a task takes one file (line_task.h) and one
// line (the first of main).
#include <cstdio>

#include "commands/catalogue/catalogue.h"
#include "support/line_task.h"
#include "tasks/catalogue.h"

int main(int argc, char** argv) {
  using namespace lockstep;
  add_task(
      "line", []() -> std::unique_ptr<Task> { return std::make_unique<LineTask>(); },
      "a line through points");
  try {
    return commands().get(argv[1])({argv + 2, argv + argc});
  } catch (const Error& error) {
    std::fprintf(stderr, "error: %s\n", error.describe().c_str());
    return error.exit_code();
  }
}

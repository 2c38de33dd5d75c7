// The tasks by name: `lockstep list tasks` prints this.
#pragma once

#include <memory>

#include "base/catalogue.h"
#include "tasks/task.h"

namespace lockstep {

using TaskMaker = std::unique_ptr<Task> (*)();
const Catalogue<TaskMaker>& tasks();

}  // namespace lockstep

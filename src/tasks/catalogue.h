// Holds the catalogue of tasks by name; `lockstep list tasks` prints it.
#pragma once

#include <memory>

#include "base/catalogue.h"
#include "tasks/task.h"

namespace lockstep {

using TaskMaker = std::unique_ptr<Task> (*)();
const Catalogue<TaskMaker>& tasks();

// For a program with a task of its own: adds it. Call before the first configuration is read.
void add_task(const std::string& name, TaskMaker maker, const std::string& help);

}  // namespace lockstep

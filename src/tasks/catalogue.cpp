#include "tasks/catalogue.h"

#include "tasks/translation.h"

namespace lockstep {

const Catalogue<TaskMaker>& tasks() {
  static const Catalogue<TaskMaker> catalogue = [] {
    Catalogue<TaskMaker> c("task");
    c.add("translation", make_translation, "sentences to sentences with a Transformer");
    return c;
  }();
  return catalogue;
}

}  // namespace lockstep

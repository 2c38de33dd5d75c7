#include "tasks/catalogue.h"

#include "tasks/image_classification.h"
#include "tasks/pretend.h"
#include "tasks/text_classification.h"
#include "tasks/translation.h"

namespace lockstep {

namespace {

Catalogue<TaskMaker>& all_tasks() {
  static Catalogue<TaskMaker> catalogue = [] {
    Catalogue<TaskMaker> c("task");
    c.add("translation", make_translation, "sentences to sentences with a Transformer");
    c.add("images", make_image_classification, "images to classes with a ResNet or a ViT");
    c.add("text", make_text_classification, "texts to classes or numbers with a BERT");
    c.add("pretend", make_pretend, "nothing: sleeps instead of computing, to try many ranks");
    return c;
  }();
  return catalogue;
}

}  // namespace

const Catalogue<TaskMaker>& tasks() { return all_tasks(); }

void add_task(const std::string& name, TaskMaker maker, const std::string& help) {
  all_tasks().add(name, maker, help);
}

}  // namespace lockstep

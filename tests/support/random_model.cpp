// Writes the weights of a small model, random ones, as transformers stores it: for tests that do
// not need libtorch themselves and are spared its start.
//   random_model bert FOLDER LABELS    TinyBert (tiny_bert.h): config.json, model.safetensors
//   random_model marian FOLDER SEED    what FOLDER/config.json describes: model.safetensors
#include <cstdio>
#include <string>

#include "models/bert_weights.h"
#include "models/published_model.h"
#include "support/tiny_bert.h"

namespace lockstep {
namespace {

void write_bert(const fs::path& folder, int64_t labels) {
  BertShape shape = kTinyBert;
  shape.num_labels = labels;
  TinyBert tiny(shape);
  BertConfig config{shape, {}, labels == 1};
  for (int64_t i = 0; i < labels; ++i) config.labels.push_back("LABEL_" + std::to_string(i));
  write_bert_folder(folder, config, tiny.parameters, "fp32");
}

void write_marian(const fs::path& folder, uint64_t seed) {
  const PublishedModel model = read_published_model(folder / "config.json");
  Parameters parameters;
  const Transformer network(model.config, model.vocabulary, parameters);
  parameters.allocate(torch::kCPU, torch::kFloat, seed);
  scatter_weights(parameters, seed + 1);
  write_published_model(folder, model, parameters, "fp32");
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  try {
    const std::string kind = argv[1];
    if (kind == "bert") lockstep::write_bert(argv[2], std::stoll(argv[3]));
    if (kind == "marian") lockstep::write_marian(argv[2], std::stoull(argv[3]));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

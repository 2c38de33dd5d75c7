#include "commands/models/classify_texts.h"

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace lockstep {

namespace {

constexpr std::size_t kTextsTogether = 64;  // texts that go through the network at a time

// A text and its origin, for messages.
struct Line {
  std::string text, where;
};

std::vector<Line> read_texts(const TextsToClassify& wanted) {
  std::vector<Line> out;
  for (std::size_t i = 0; i < wanted.texts.size(); ++i) {
    out.push_back({wanted.texts[i], fmt::format("text {}", i + 1)});
  }
  auto add = [&](const std::string& name, std::string line, int64_t number) {
    out.push_back({std::move(line), fmt::format("{}:{}", name, number)});
  };
  if (wanted.file == "-") {
    std::string line;
    for (int64_t number = 1; std::getline(std::cin, line); ++number) {
      if (line.ends_with('\r')) line.pop_back();
      add("standard input", std::move(line), number);
    }
  } else if (!wanted.file.empty()) {
    for_each_line(wanted.file, [&](std::string_view line, int64_t number) {
      add(wanted.file, std::string(line), number);
    });
  }
  return out;
}

TextPair pair_of(const Line& line, bool pairs) {
  if (const auto at = invalid_utf8_at(line.text)) {
    throw DataError("{}: not valid UTF-8 at byte {}", line.where, *at);
  }
  if (!pairs) return {line.text};
  const std::vector<std::string> parts = split(line.text, '\t');
  if (parts.size() != 2) {
    throw DataError("{}: {} column{}, expected two texts with a tabulator between them", line.where,
                    parts.size(), parts.size() == 1 ? "" : "s");
  }
  return {parts[0], parts[1]};
}

std::string shown(const TextPair& text) {
  return text.pair ? text.text + "\t" + *text.pair : text.text;
}

nlohmann::ordered_json described(const TextPair& text) {
  nlohmann::ordered_json out = {{"text", text.text}};
  if (text.pair) out["pair"] = *text.pair;
  return out;
}

void print_value(const TextPair& text, double value, bool json) {
  if (!json) {
    fmt::print("{}\n  {:.4f}\n", shown(text), value);
    return;
  }
  nlohmann::ordered_json line = described(text);
  line["value"] = value;
  fmt::print("{}\n", line.dump());
}

void print_classes(const TextPair& text, const std::vector<ClassProbability>& classes, bool json) {
  if (!json) {
    fmt::print("{}\n", shown(text));
    for (const ClassProbability& c : classes) {
      fmt::print("  {:7.3f} %  {}\n", 100 * c.probability, c.name);
    }
    return;
  }
  nlohmann::ordered_json line = described(text);
  line["classes"] = nlohmann::json::array();
  for (const ClassProbability& c : classes) {
    line["classes"].push_back({{"name", c.name}, {"probability", c.probability}});
  }
  fmt::print("{}\n", line.dump());
}

}  // namespace

void classify_texts(const TextUse& model, const TextsToClassify& wanted) {
  const std::vector<Line> lines = read_texts(wanted);
  if (lines.empty()) throw ConfigError("classify: expected a run and at least one text");
  for (std::size_t begin = 0; begin < lines.size(); begin += kTextsTogether) {
    std::vector<TextPair> texts;
    for (std::size_t i = begin; i < std::min(lines.size(), begin + kTextsTogether); ++i) {
      texts.push_back(pair_of(lines[i], wanted.pairs));
    }
    if (model.predicts_values()) {
      const torch::Tensor values = model.score(texts);
      for (std::size_t i = 0; i < texts.size(); ++i) {
        print_value(texts[i], values[static_cast<int64_t>(i)][0].item<double>(), wanted.json);
      }
    } else {
      const auto found = model.classify(texts, wanted.top);
      for (std::size_t i = 0; i < texts.size(); ++i) print_classes(texts[i], found[i], wanted.json);
    }
    std::fflush(stdout);
  }
}

}  // namespace lockstep

// lockstep-translate FOLDER: translates lines with an exported model, without torch. A process of
// its own rather than a command of lockstep: it starts in milliseconds and fits small machines.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "edge/edge_file.h"
#include "edge/edge_translator.h"

namespace lockstep {
namespace {

constexpr const char* kUsage =
    R"(Translates lines: standard input to standard output, or files.
Usage: lockstep-translate FOLDER [options] [key=value...]

FOLDER is one that `lockstep export RUN --format edge --out FOLDER` wrote.
  --beam N             hypotheses kept; 1 is greedy search
  --length-penalty X   exponent of ((5 + length) / 6)
  --n-best N           print so many translations a line: number of the line ||| text ||| score
  --threads N          threads that decode; 0: as many as this process may use (default)
  --input FILE         a file of sentences
  --output FILE        write the translations here, whole or not at all
  --chunk N            lines that are sorted by length and translated together (default 1024)
  --statistics         say at the end how fast it was, loading not counted
  --check              compare all weights with their checksum and translate nothing
  --version, --help
key=value words are those of [decoding] for beam search, such as decoding.min_length=3; what is not
given is as the model was exported. Exit codes: 0, 2 (command line), 3 (files, lines), 4 (machine).
)";

struct Options {
  std::string folder, input, output;
  EdgeTranslator::Options translator;
  int64_t n_best = 0, chunk = 1024;
  bool statistics = false, check = false;
};

int64_t number_of(const std::string& option, const std::string& text, int64_t least) {
  std::size_t end = 0;
  int64_t value = least - 1;
  try {
    value = std::stoll(text, &end);
  } catch (const std::exception&) {
  }
  if (end != text.size() || value < least) {
    throw ConfigError("{}: expected a number from {}, got \"{}\"", option, least, text);
  }
  return value;
}

// Takes the options from the words after the program's name. Returns false when all is done.
bool parse(const std::vector<std::string>& words, Options& o) {
  static const std::vector<std::string> names = {
      "--beam",  "--length-penalty", "--n-best", "--threads", "--input", "--output",
      "--chunk", "--statistics",     "--check",  "--version", "--help"};
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string word = words[i], given;
    const std::size_t equals = word.find('=');
    const bool has_value = word.starts_with("--") && equals != std::string::npos;
    if (has_value) {
      given = word.substr(equals + 1);
      word.resize(equals);
    }
    auto value = [&]() -> std::string {
      if (has_value) return given;
      if (i + 1 == words.size()) throw ConfigError("{}: expected a value", word);
      return words[++i];
    };
    if (word == "--help" || word == "-h") {
      fmt::print("{}", kUsage);
      return false;
    } else if (word == "--version") {
      fmt::print("lockstep-translate {}, edge format {}, kernels {}\n", LOCKSTEP_VERSION,
                 kEdgeVersion, kernels().isa);
      return false;
    } else if (word == "--beam") {
      o.translator.settings.push_back("beam_size=" + value());
    } else if (word == "--length-penalty") {
      o.translator.settings.push_back("length_penalty=" + value());
    } else if (word == "--n-best") {
      o.n_best = number_of(word, value(), 1);
    } else if (word == "--threads") {
      o.translator.threads = number_of(word, value(), 0);
    } else if (word == "--input") {
      o.input = value();
    } else if (word == "--output") {
      o.output = value();
    } else if (word == "--chunk") {
      o.chunk = number_of(word, value(), 1);
    } else if (word == "--statistics") {
      o.statistics = true;
    } else if (word == "--check") {
      o.check = true;
    } else if (word.starts_with("-")) {
      throw ConfigError("{}: unknown option{}", word, did_you_mean(word, names));
    } else if (equals != std::string::npos && !o.folder.empty()) {
      o.translator.settings.push_back(word);
    } else if (!o.folder.empty()) {
      throw ConfigError("\"{}\": expected one folder, or key=value", word);
    } else {
      o.folder = word;
    }
  }
  if (o.folder.empty()) throw ConfigError("expected the folder of a model (--help)");
  o.translator.n_best = std::max<int64_t>(1, o.n_best);
  return true;
}

// Translates the lines of a stream in chunks.
class StreamTranslator {
 public:
  StreamTranslator(const EdgeTranslator& translator, const Options& options)
      : translator_(translator), options_(options) {}

  void run(std::istream& in, const std::string& name) {
    const bool interactive = options_.input.empty() && ::isatty(STDIN_FILENO) == 1;
    std::string line;
    while (std::getline(in, line)) {
      if (!line.empty() && line.back() == '\r') line.pop_back();
      lines_.push_back(line);
      if (interactive || std::ssize(lines_) == options_.chunk) flush(name);
    }
    if (in.bad()) throw DataError("{}: cannot be read", name);
    flush(name);
    if (!options_.output.empty()) write_output();
    if (!options_.statistics) return;
    fmt::print(stderr, "{} lines, {} pieces in {:.3f} s: {:.0f} pieces a second\n", done_, pieces_,
               seconds_.count(), static_cast<double>(pieces_) / seconds_.count());
  }

 private:
  void flush(const std::string& name) {
    const auto start = std::chrono::steady_clock::now();
    std::string text;
    try {
      for (const auto& of_line : translator_.translate(lines_, done_ + 1)) {
        for (const EdgeTranslator::Translation& t : of_line) {
          pieces_ += t.pieces;
          text += options_.n_best == 0
                      ? t.text + "\n"
                      : fmt::format("{} ||| {} ||| {:.6f}\n", done_, t.text, t.score);
        }
        ++done_;
      }
    } catch (Error& error) {
      error.add_context("translating " + name);
      throw;
    }
    seconds_ += std::chrono::steady_clock::now() - start;
    lines_.clear();
    if (!options_.output.empty()) {
      collected_ += text;
    } else if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() ||
               std::fflush(stdout) != 0) {
      throw MachineError("standard output cannot be written");
    }
  }

  void write_output() const {
    const fs::path path = options_.output, temporary = options_.output + ".tmp";
    std::ofstream out(temporary, std::ios::binary);
    out.write(collected_.data(), std::ssize(collected_));
    out.close();
    std::error_code failed;
    if (out) fs::rename(temporary, path, failed);
    if (out && !failed) return;
    fs::remove(temporary, failed);
    throw MachineError("{}: cannot be written", options_.output);
  }

  const EdgeTranslator& translator_;
  const Options& options_;
  std::vector<std::string> lines_;
  std::string collected_;
  int64_t done_ = 0, pieces_ = 0;
  std::chrono::duration<double> seconds_{0};
};

int run(const std::vector<std::string>& words) {
  Options options;
  if (!parse(words, options)) return kExitOk;
  if (options.check) {
    EdgeFolder(options.folder).check_weights();
    fmt::print("{}: whole\n", options.folder);
    return kExitOk;
  }
  const EdgeTranslator translator(options.folder, options.translator);
  StreamTranslator lines(translator, options);
  if (options.input.empty()) {
    std::ios::sync_with_stdio(false);
    lines.run(std::cin, "standard input");
    return kExitOk;
  }
  std::ifstream file(options.input, std::ios::binary);
  if (!file) throw DataError("{}: cannot be read", options.input);
  lines.run(file, options.input);
  return kExitOk;
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  try {
    return lockstep::run({argv + 1, argv + argc});
  } catch (const lockstep::Error& error) {
    fmt::print(stderr, "error: {}\n", error.describe());
    return error.exit_code();
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return lockstep::kExitInternal;
  }
}

#include "commands/translate.h"

#include <unistd.h>

#include <iostream>

#include "base/log.h"
#include "commands/session.h"
#include "tasks/translation.h"
#include "train/saved_run.h"

namespace lockstep {

namespace {

// Translates what was read so far, in the order read.
void flush_lines(Translation& task, std::vector<std::string>& lines) {
  for (const std::string& line : task.translate(lines)) fmt::print("{}\n", line);
  std::fflush(stdout);
  lines.clear();
}

void check_line(const std::string& line, int64_t number) {
  if (auto at = invalid_utf8_at(line)) {
    throw DataError("standard input:{}:{}: byte 0x{:02x} is not valid UTF-8", number, *at + 1,
                    static_cast<unsigned char>(line[*at]));
  }
}

}  // namespace

int translate(const Arguments& arguments) {
  std::vector<std::string> words;
  SavedRunOptions options;
  int64_t chunk = 1024;
  CLI::App app("Translates the lines of standard input to standard output.", "lockstep translate");
  app.add_option("words", words, "RUN, and key=value words such as decoding.beam_size=1");
  app.add_option("--checkpoint", options.checkpoint, kCheckpointHelp)
      ->capture_default_str();
  app.add_option("--chunk", chunk, "lines that are sorted by length and translated together")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  if (!parse_arguments(app, arguments)) return kExitOk;
  options.words = take_settings(words);
  if (words.size() != 1) throw ConfigError("translate: expected one run folder");

  prepare_process({});
  SavedRun run = open_saved_run(words.front(), options);
  auto task = dynamic_cast<Translation*>(run.config.task.get());
  if (task == nullptr) {
    throw ConfigError("{}: its task is {}, not translation", words.front(), run.config.task_name);
  }
  bool interactive = ::isatty(STDIN_FILENO) == 1;
  std::vector<std::string> lines;
  std::string line;
  for (int64_t number = 1; std::getline(std::cin, line); ++number) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    check_line(line, number);
    lines.push_back(line);
    if (interactive || static_cast<int64_t>(lines.size()) == chunk) flush_lines(*task, lines);
  }
  flush_lines(*task, lines);
  return kExitOk;
}

}  // namespace lockstep

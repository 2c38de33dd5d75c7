// What is told of a run while it goes on and when it ends, and whom (`launch --notify`): a text for
// people and fields for programs, in the JSON that the usual chat services take
// (docs/launch.md#being-told).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

struct Notice {
  std::string event;              // "end", "failure", ...: those of launch.jsonl, and "divergence"
  std::string text;               // for a person
  std::string run;                // its folder, else the command; empty: unknown
  std::string host;               // that the event is about; empty: none
  int64_t step = -1, steps = -1;  // the newest known, and all of the run; -1: not known
  std::string metric;             // of the newest evaluation; empty: none yet
  double value = 0;               // its value
  double hours = 0;               // since the launcher began
  double cost = -1, budget = -1;  // spent on the run so far, and to be spent; -1: not known
  int hosts = 1, ranks = 1;
  int exit_code = -1;              // once the run is over
  std::vector<std::string> lines;  // the last ones of a rank that failed, else of rank 0
};

// Someone who is told: a URL that is posted to, or a shell command.
struct NotifyTarget {
  std::string word;
  bool is_url = false;
  // What messages may show: a webhook's path and query are its password, so only the host.
  std::string shown;
};

// Makes sense of a word of --notify: a URL of http or https, a shell command, or "@FILE", whose
// first line is one of these. Throws ConfigError, without the URL's secret parts, for a URL that is
// malformed, a file that cannot be read, and a command whose program does not exist.
NotifyTarget notify_target(const std::string& word);

// Throws ConfigError when the program that a shell command begins with does not exist; a command
// that begins with something else than a plain word is left to the shell. `option` names it.
void check_shell_command(const std::string& command, const std::string& option);

// The notice as a person reads it: what happened, how far the run is, what it has cost, and the
// last lines.
std::string words_of(const Notice& notice);

// The notice as JSON with all that is known: `text`, `content` and the fields above.
std::string json_of(const Notice& notice);

// The body to post to this URL: {"text"} for Slack, {"content"} of at most 2,000 characters for
// Discord, an adaptive card for workflows of Teams, each of which takes nothing else; json_of() for
// everyone else (Mattermost, which reads `text` alone, and programs).
std::string body_for(const std::string& url, const Notice& notice);

}  // namespace lockstep

#include "launch/ending/notice.h"

#include <curl/curl.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/program.h"
#include "base/text.h"

namespace lockstep {

namespace {

using NoticeJson = nlohmann::ordered_json;

constexpr std::size_t kMostLines = 12;
constexpr std::size_t kLongestLine = 300;     // code points
constexpr std::size_t kMostOfDiscord = 2000;  // code points of `content`

// The part of a URL, empty when it has none or is no URL.
std::string part_of_url(const std::string& url, CURLUPart part) {
  const std::unique_ptr<CURLU, void (*)(CURLU*)> parsed(curl_url(), curl_url_cleanup);
  if (!parsed || curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK) return "";
  char* text = nullptr;
  if (curl_url_get(parsed.get(), part, &text, 0) != CURLUE_OK) return "";
  const std::unique_ptr<char, void (*)(void*)> own(text, curl_free);
  return text;
}

bool is_host_below(const std::string& host, std::string_view domain) {
  return host == domain || host.ends_with("." + std::string(domain));
}

std::string cut(const std::string& text, std::size_t most) {
  const std::u32string all = to_code_points(text);
  if (all.size() <= most) return to_utf8(all);
  return to_utf8(all.substr(0, most - 1)) + "…";
}

std::string dump(const NoticeJson& json) {
  return json.dump(-1, ' ', false, NoticeJson::error_handler_t::replace);
}

NotifyTarget url_target(const std::string& url) {
  const std::string host = part_of_url(url, CURLUPART_HOST);
  const bool plain = std::all_of(url.begin(), url.end(), [](unsigned char c) { return c > ' '; });
  const char after_scheme = url[url.find("://") + 3];  // libcurl passes over a third slash
  if (host.empty() || !plain || after_scheme == '/') {
    throw ConfigError("--notify {}...: not a URL of http or https with a host",
                      url.substr(0, url.find("://") + 3));
  }
  return {.word = url, .is_url = true, .shown = host};
}

std::string first_line_of(const std::string& file) {
  std::vector<std::string> lines;
  try {
    lines = read_lines(file);
  } catch (const Error& error) {
    throw ConfigError("--notify @{}: {}", file, error.what());
  }
  const std::string line = lines.empty() ? "" : std::string(trim(lines.front()));
  if (line.empty()) throw ConfigError("--notify @{}: its first line is empty", file);
  return line;
}

}  // namespace

void check_shell_command(const std::string& command, const std::string& option) {
  const std::vector<std::string_view> words = split_words(command);
  if (words.empty()) throw ConfigError("{}: expected a command", option);
  const std::string first(words.front());
  // Assignments, quotes, variables, groups and the shell's own words are the shell's to judge.
  if (first.find_first_of("=\"'$`(){}[]<>|&;~*?!\\") != std::string::npos) return;
  for (const char* own : {"cd", "exec", "export", "if", "for", "while", "case", "set", ":", "."}) {
    if (first == own) return;
  }
  if (find_in_path(first)) return;
  if (first.find('/') != std::string::npos) {
    throw ConfigError("{} {}: no program that can be run", option, first);
  }
  throw ConfigError("{} {}: no program \"{}\" in PATH", option, first, first);
}

NotifyTarget notify_target(const std::string& word) {
  const std::string given = word.starts_with('@') ? first_line_of(word.substr(1)) : word;
  if (given.starts_with("http://") || given.starts_with("https://")) return url_target(given);
  const std::size_t scheme = given.find("://");
  if (scheme != std::string::npos && given.find_first_of(" \t'\"") > scheme) {
    throw ConfigError("--notify {}://...: expected a URL of http or https, or a command",
                      given.substr(0, scheme));
  }
  check_shell_command(given, "--notify");
  return {.word = given, .shown = std::string(split_words(given).front())};
}

std::string words_of(const Notice& n) {
  std::string out = n.run.empty() ? n.text : n.run + ": " + n.text;
  std::vector<std::string> facts;
  if (n.step >= 0) {
    facts.push_back(n.steps > 0
                        ? fmt::format("step {}/{}", with_commas(n.step), with_commas(n.steps))
                        : fmt::format("step {}", with_commas(n.step)));
  }
  if (!n.metric.empty()) facts.push_back(fmt::format("{} {:.4g}", n.metric, n.value));
  facts.push_back(fmt::format("{} {}", n.hosts, n.hosts == 1 ? "host" : "hosts"));
  facts.push_back(short_duration(n.hours * 3600));
  if (n.cost >= 0) {
    facts.push_back(n.budget > 0 ? fmt::format("{:.2f} of {:.2f} spent", n.cost, n.budget)
                                 : fmt::format("{:.2f} spent", n.cost));
  }
  out += "\n" + join(facts, ", ");
  const std::size_t first = n.lines.size() - std::min(n.lines.size(), kMostLines);
  for (std::size_t i = first; i < n.lines.size(); ++i)
    out += "\n| " + cut(n.lines[i], kLongestLine);
  return out;
}

std::string json_of(const Notice& n) {
  const std::string words = words_of(n);
  NoticeJson json = {{"text", words},    {"content", cut(words, kMostOfDiscord)},
                     {"event", n.event}, {"message", n.text},
                     {"run", n.run},     {"hosts", n.hosts},
                     {"ranks", n.ranks}, {"hours", n.hours}};
  if (!n.host.empty()) json["host"] = n.host;
  if (n.step >= 0) json["step"] = n.step;
  if (n.steps >= 0) json["total_steps"] = n.steps;
  if (!n.metric.empty()) json["metric"] = {{"name", n.metric}, {"value", n.value}};
  if (n.cost >= 0) json["cost"] = n.cost;
  if (n.budget > 0) json["budget"] = n.budget;
  if (n.exit_code >= 0) json["exit_code"] = n.exit_code;
  json["log"] = NoticeJson::array();
  const std::size_t first = n.lines.size() - std::min(n.lines.size(), kMostLines);
  for (std::size_t i = first; i < n.lines.size(); ++i) {
    json["log"].push_back(cut(n.lines[i], kLongestLine));
  }
  return dump(json);
}

std::string body_for(const std::string& url, const Notice& notice) {
  const std::string host = lower_ascii(part_of_url(url, CURLUPART_HOST));
  if (is_host_below(host, "slack.com")) return dump({{"text", words_of(notice)}});
  if (is_host_below(host, "discord.com") || is_host_below(host, "discordapp.com")) {
    return dump({{"content", cut(words_of(notice), kMostOfDiscord)}});
  }
  // "Post to a channel when a webhook request is received" loops over `attachments`.
  if (is_host_below(host, "logic.azure.com") || is_host_below(host, "powerplatform.com")) {
    NoticeJson block = {{"type", "TextBlock"}, {"text", words_of(notice)}, {"wrap", true}};
    NoticeJson card = {{"type", "AdaptiveCard"},
                       {"version", "1.4"},
                       {"body", NoticeJson::array({std::move(block)})}};
    NoticeJson attachment = {{"contentType", "application/vnd.microsoft.card.adaptive"},
                             {"content", std::move(card)}};
    return dump({{"type", "message"}, {"attachments", NoticeJson::array({std::move(attachment)})}});
  }
  return json_of(notice);
}

}  // namespace lockstep

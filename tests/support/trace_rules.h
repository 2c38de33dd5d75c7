// Checks that a file keeps the rules of Chrome's trace-event format ("Trace Event Format", Google,
// 2016) on which viewers rely.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

class TraceRules {
 public:
  // Returns the first rule that the file breaks, with the event; empty when it keeps all.
  static std::string broken(const nlohmann::json& file) {
    TraceRules rules;
    return rules.check(file);
  }

 private:
  using Json = nlohmann::json;
  using Place = std::pair<int64_t, int64_t>;

  std::string check(const Json& file) {
    if (!file.is_object() || !file.contains("traceEvents")) return "no object with traceEvents";
    if (!file["traceEvents"].is_array()) return "traceEvents is no list";
    for (const Json& event : file["traceEvents"]) {
      if (std::string wrong = check_event(event); !wrong.empty()) {
        return wrong + ": " + event.dump();
      }
    }
    for (const auto& [id, state] : flows_) {
      if (state != 'f') return "flow " + std::to_string(id) + " has no end";
    }
    for (const Place& place : used_) {
      if (!processes_.contains(place.first)) return "process without a name";
      if (!threads_.contains(place)) {
        return "thread " + std::to_string(place.second) + " without a name";
      }
    }
    return "";
  }

  std::string check_event(const Json& e) {
    for (const char* key : {"name", "ph"}) {
      if (!e.contains(key) || !e[key].is_string() || e[key].get<std::string>().empty()) {
        return std::string("no ") + key;
      }
    }
    for (const char* key : {"pid", "tid"}) {
      if (!e.contains(key) || !e[key].is_number_integer()) return std::string("no ") + key;
    }
    const Place place{e["pid"], e["tid"]};
    const std::string kind = e["ph"];
    if (kind == "M") return check_metadata(e, place);
    if (!e.contains("ts") || !e["ts"].is_number()) return "no ts";
    const double ts = e["ts"];
    if (ts < 0) return "ts below 0";
    if (ts < newest_) return "ts before that of the event before";
    newest_ = ts;
    if (kind == "C") return check_counter(e, place);
    if (kind == "i") return check_instant(e, place);
    if (kind == "X") return check_slice(e, place, ts);
    if (kind == "s" || kind == "t" || kind == "f") return check_flow(e, place, ts);
    return "ph is not one that is used";
  }

  std::string check_metadata(const Json& e, const Place& place) {
    const std::string name = e["name"];
    const Json args = e.value("args", Json());
    if (name == "process_name" || name == "thread_name") {
      if (!args.is_object() || !args.contains("name") || !args["name"].is_string()) {
        return "metadata without a name";
      }
      if (name == "process_name") {
        if (!processes_.insert(place.first).second) return "process named twice";
      } else if (!threads_.insert(place).second) {
        return "thread named twice";
      }
      return "";
    }
    if (name != "process_sort_index" && name != "thread_sort_index") return "metadata not known";
    return args.is_object() && args.contains("sort_index") && args["sort_index"].is_number_integer()
               ? ""
               : "no sort_index";
  }

  std::string check_counter(const Json& e, const Place& place) {
    if (!processes_.contains(place.first)) return "counter of a process without a name";
    if (!e.contains("args") || !e["args"].is_object() || e["args"].empty()) return "no args";
    for (const auto& [name, value] : e["args"].items()) {
      if (!value.is_number()) return "counter that is no number";
    }
    return "";
  }

  std::string check_instant(const Json& e, const Place& place) {
    const std::string scope = e.value("s", "");
    if (scope != "g" && scope != "p" && scope != "t") return "scope of an instant";
    used_.insert(place);
    return "";
  }

  std::string check_slice(const Json& e, const Place& place, double ts) {
    if (!e.contains("dur") || !e["dur"].is_number()) return "no dur";
    if (e["dur"] < 0) return "dur below 0";
    if (e.contains("args") && !e["args"].is_object()) return "args that are no object";
    used_.insert(place);
    // Compares whole nanoseconds, since the file has three decimals.
    const int64_t begin = std::llround(ts * 1e3);
    const int64_t end = begin + std::llround(e["dur"].get<double>() * 1e3);
    auto& open = open_[place];
    while (!open.empty() && open.back().second <= begin) open.pop_back();
    if (!open.empty() && open.back().second < end) return "overlaps the slice before it";
    open.emplace_back(begin, end);
    return "";
  }

  std::string check_flow(const Json& e, const Place& place, double ts) {
    if (!e.contains("id") || !e.contains("cat")) return "flow without id or cat";
    const char kind = e["ph"].get<std::string>()[0];
    auto [state, first] = flows_.try_emplace(e["id"].get<int64_t>(), '-');
    const bool right =
        kind == 's' ? state->second == '-' : state->second == 's' || state->second == 't';
    if (!right) return "flow out of order";
    state->second = kind;
    const int64_t at = std::llround(ts * 1e3);
    for (const auto& [begin, end] : open_[place]) {
      if (begin <= at && at <= end) return "";
    }
    return "flow outside of a slice";
  }

  double newest_ = 0;
  std::set<int64_t> processes_;
  std::set<Place> threads_, used_;
  std::map<Place, std::vector<std::pair<int64_t, int64_t>>> open_;
  std::map<int64_t, char> flows_;
};

}  // namespace lockstep

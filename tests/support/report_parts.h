// Picks findings and answers from a report's JSON (docs/report.md#reportjson).
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

namespace lockstep {

inline std::set<std::string> findings_of(const nlohmann::ordered_json& report) {
  std::set<std::string> out;
  for (const nlohmann::ordered_json& finding : report.at("findings"))
    out.insert(finding.at("id").get<std::string>());
  return out;
}

inline nlohmann::ordered_json answer_of(const nlohmann::ordered_json& report,
                                        const std::string& id) {
  for (const nlohmann::ordered_json& one : report.at("answers")) {
    if (one.at("id") == id) return one;
  }
  ADD_FAILURE() << "no answer " << id;
  return nullptr;
}

}  // namespace lockstep

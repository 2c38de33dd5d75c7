// `lockstep probe`: the far end of doctor and plan. ssh starts it on each host; it answers requests
// on standard output, one JSON object per line. The near end ignores what is not our JSON (a login
// message). It ends when its standard input does, so that nothing stays on a host whose caller is
// gone.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace lockstep {

using ProbeAnswer = std::function<nlohmann::ordered_json(const nlohmann::ordered_json& request)>;

// Serves until standard input ends: {"ask": NAME, ...} gets {"probe": NAME, ...}, or {"probe":
// "error", "message": ..., "exit": ...} when an answer throws.
void serve_probe(const std::map<std::string, ProbeAnswer>& answers);

// Returns what this machine is and has: versions, processors, memory, disks, interfaces, GPUs,
// network settings, hashes. The request may name "folder" to change into (also "~/..."), "config"
// (a file to hash), "corpus" (a folder made by prepare) and "disks" (paths whose disks are wanted).
// docs/before-a-run.md lists the fields (the command adds the version of libtorch and what it
// computes on). Never throws for what is missing: the field then says so.
nlohmann::ordered_json probe_facts(const nlohmann::ordered_json& request);

}  // namespace lockstep

// `lockstep probe`: the far end of doctor and plan. It runs on each host, started through ssh, and
// answers requests, one JSON object a line, on standard output; what is not JSON of ours (a login
// message) the other side passes over. It ends when its standard input does, so that nothing stays
// on a host whose caller is gone.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace lockstep {

using ProbeAnswer = std::function<nlohmann::ordered_json(const nlohmann::ordered_json& request)>;

// Serves until standard input ends: {"ask": NAME, ...} gets {"probe": NAME, ...}, or
// {"probe": "error", "message": ..., "exit": ...} for what an answer throws.
void serve_probe(const std::map<std::string, ProbeAnswer>& answers);

// What this machine is and has: versions, processors, memory, disks, interfaces, GPUs, settings of
// the network, hashes. The request may name: "folder" to change into, "config" (a file to hash),
// "corpus" (a folder made by prepare), "disks" (paths whose disks are wanted). docs/before-a-run.md
// lists the fields (the version of libtorch and what it computes on are added by the command).
// Never throws for what is missing: the field then says so.
nlohmann::ordered_json probe_facts(const nlohmann::ordered_json& request);

}  // namespace lockstep

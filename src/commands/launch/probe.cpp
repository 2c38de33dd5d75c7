#include "commands/launch/probe.h"

#include <torch/version.h>

#include <chrono>
#include <memory>

#include "base/gpu_monitor.h"
#include "commands/process/process_setup.h"
#include "dist/collectives/cuda.h"
#include "dist/collectives/exchange_timing.h"
#include "dist/rank/network.h"
#include "dist/rank/token.h"
#include "launch/probe/probe.h"
#include "launch/probe/probe_link.h"
#include "train/config/precision.h"
#include "train/parts/machine_speed.h"

namespace lockstep {

namespace {

using Json = nlohmann::ordered_json;

// Reports what a rank would compute on here, from what the driver's library shows and torch uses.
Json compute() {
  const int gpus = usable_gpus();
  const NumberFormats formats = device_formats(gpus > 0, 0);
  return {{"gpus", gpus},
          {"gpus_seen", gpus > 0 ? gpus : GpuMonitor(nvml_library()).count()},
          {"why_no_gpu", why_no_gpu()},
          {"bf16", formats.bf16},
          {"fp16", formats.fp16},
          {"formats_why", formats.why}};
}

Json facts(const Json& request) {
  Json out = probe_facts(request);
  out["versions"]["libtorch"] = TORCH_VERSION;
  out["compute"] = compute();
  return out;
}

Json clock_now(const Json&) {
  std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  return {{"time", now.count()}};
}

Json speed(const Json& request) {
  const MachineSpeed s = measure_machine(request.value("seconds", 1.0));
  return {{"device", s.device},
          {"threads", s.threads},
          {"fp32_one_core_flops", s.fp32_one},
          {"fp32_flops", s.fp32_all},
          {"bf16_one_core_flops", s.bf16_one},
          {"bf16_flops", s.bf16_all},
          {"copied_bytes_per_second", s.copied_bytes_per_second}};
}

Token token_of(const Json& request, const char* key) {
  return token_of_hex(request.at(key).get<std::string>());
}

Json link(const Json& request) {
  return to_json(measure_link({.from = request.at("from"),
                               .to = request.at("to"),
                               .port = request.at("port"),
                               .token = token_of(request, "token"),
                               .seconds = request.value("seconds", 0.3),
                               .streams = request.value("streams", 4)}));
}

// Returns the address of this host on its route to another.
Json route(const Json& request) {
  const LocalAddress local = local_address_towards(request.at("to").get<std::string>());
  return {{"address", local.address}, {"interface", local.interface}};
}

// Runs all-reduces. Rank 0's socket for their store is bound before the others are told its port.
class Exchanges {
 public:
  Json listen(const Json& request) {
    socket_ = Descriptor(listen_on(request.at("address"), 0));
    return {{"port", port_of(socket_.get())}};
  }

  // There is one rank per host; every host is asked the same at the same time.
  Json run(const Json& request) {
    LaunchEnvironment environment;
    environment.rank = request.at("rank");
    environment.size = request.at("size");
    environment.master_address = request.at("address");
    environment.master_port = request.at("port");
    environment.run_id = request.at("run_id");
    environment.secret = token_of(request, "secret");
    environment.launcher = "lockstep";
    if (environment.rank == 0) {
      environment.store_descriptor = ::dup(socket_.get());
      socket_.close();
    }
    const std::chrono::seconds limit(request.value("limit_seconds", 15));
    WorldOptions options{.timeout = limit, .connect_timeout = limit};
    options.machine = std::to_string(environment.rank);  // hosts must not share memory
    World world(environment, options);
    Json out = {{"exchanges", Json::array()}};
    for (const Json& wanted : request.at("exchanges")) {
      const ExchangeTime t = time_exchange(
          world, {.sums = wanted.at("sums"),
                  .repeats = wanted.at("repeats"),
                  .pause = std::chrono::milliseconds(wanted.value("pause_ms", 0)),
                  .limit = std::chrono::milliseconds(wanted.value("limit_ms", 3000))});
      out["exchanges"].push_back(
          {{"repeats", t.repeats}, {"seconds", t.seconds}, {"cpu_seconds", t.cpu_seconds}});
    }
    return out;
  }

 private:
  Descriptor socket_;
};

}  // namespace

int probe(const Arguments& arguments) {
  CommandLine app("Answers what lockstep doctor and plan ask of a host, on standard input.",
                  "lockstep probe");
  if (!app.parse(arguments)) return kExitOk;
  prepare_process(LaunchEnvironment{});
  std::unique_ptr<LinkServer> server;
  Exchanges exchanges;
  serve_probe({{"facts", facts},
               {"clock", clock_now},
               {"speed", speed},
               {"link", link},
               {"route", route},
               {"listen",
                [&](const Json& request) {
                  server = std::make_unique<LinkServer>(request.at("address").get<std::string>(),
                                                        token_of(request, "token"));
                  return Json{{"port", server->port()}};
                }},
               {"exchange_listen", [&](const Json& r) { return exchanges.listen(r); }},
               {"exchange", [&](const Json& r) { return exchanges.run(r); }}});
  return kExitOk;
}

}  // namespace lockstep

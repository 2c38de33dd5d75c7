#include "report/timeline/trace_events.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace lockstep {

namespace {

using Json = nlohmann::ordered_json;

std::string json_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string args_text(const Json& args) {
  return args.is_object() && !args.empty() ? ",\"args\":" + json_text(args) : "";
}

// Writes nanoseconds as microseconds with three decimals, which is exact.
std::string microseconds(int64_t nanoseconds) {
  return fmt::format("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
}

std::string metadata(const char* what, TracePlace place, const Json& args) {
  return fmt::format(R"({{"name":"{}","ph":"M","pid":{},"tid":{},"args":{}}})", what, place.process,
                     place.thread, json_text(args));
}

std::string gzip(const std::string& text) {
  z_stream stream{};
  constexpr int kGzip = 15 + 16;  // the largest window, with gzip's header
  if (deflateInit2(&stream, 6, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw MachineError("no memory to compress {} bytes", text.size());
  }
  std::string out;
  std::array<char, 1 << 16> buffer;
  std::size_t taken = 0;
  int state = Z_OK;
  while (state != Z_STREAM_END) {
    if (stream.avail_in == 0) {  // in pieces that fit its counter
      const std::size_t piece = std::min<std::size_t>(text.size() - taken, 1 << 30);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data() + taken));
      stream.avail_in = static_cast<uInt>(piece);
      taken += piece;
    }
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = buffer.size();
    state = deflate(&stream, taken == text.size() ? Z_FINISH : Z_NO_FLUSH);
    out.append(buffer.data(), buffer.size() - stream.avail_out);
  }
  deflateEnd(&stream);
  return out;
}

}  // namespace

int64_t trace_nanoseconds(double seconds) { return std::llround(seconds * 1e9); }

void TraceEvents::name_process(int process, const std::string& name, int order) {
  metadata_.push_back(metadata("process_name", {process, 0}, {{"name", name}}));
  metadata_.push_back(metadata("process_sort_index", {process, 0}, {{"sort_index", order}}));
}

void TraceEvents::name_thread(TracePlace place, const std::string& name, int order) {
  metadata_.push_back(metadata("thread_name", place, {{"name", name}}));
  metadata_.push_back(metadata("thread_sort_index", place, {{"sort_index", order}}));
}

void TraceEvents::add(int64_t time, int64_t length, std::string head, std::string tail) {
  events_.push_back({time, length, std::move(head), std::move(tail)});
}

void TraceEvents::slice(TracePlace place, const std::string& name, double begin, double end,
                        const Json& args) {
  const int64_t from = trace_nanoseconds(begin);
  const int64_t length = std::max<int64_t>(0, trace_nanoseconds(end) - from);
  add(from, length,
      fmt::format(R"({{"name":{},"ph":"X","pid":{},"tid":{},"ts":)", json_text(name), place.process,
                  place.thread),
      fmt::format(",\"dur\":{}{}}}", microseconds(length), args_text(args)));
}

void TraceEvents::instant(TracePlace place, const std::string& name, double time, bool across_all,
                          const Json& args) {
  add(trace_nanoseconds(time), 0,
      fmt::format(R"({{"name":{},"ph":"i","s":"{}","pid":{},"tid":{},"ts":)", json_text(name),
                  across_all ? 'g' : 't', place.process, place.thread),
      args_text(args) + "}");
}

void TraceEvents::counter(int process, const std::string& name, double time, double value) {
  if (!std::isfinite(value)) return;
  add(trace_nanoseconds(time), 0,
      fmt::format(R"({{"name":{},"ph":"C","pid":{},"tid":0,"ts":)", json_text(name), process),
      fmt::format(",\"args\":{{\"value\":{}}}}}", json_text(value)));
}

void TraceEvents::flow(const std::string& name,
                       const std::vector<std::pair<TracePlace, double>>& points) {
  if (points.size() < 2) return;
  flows_ += 1;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const char phase = i == 0 ? 's' : i + 1 == points.size() ? 'f' : 't';
    add(trace_nanoseconds(points[i].second), 0,
        fmt::format(R"({{"name":{},"cat":"exchange","ph":"{}",{}"id":{},"pid":{},"tid":{},"ts":)",
                    json_text(name), phase, phase == 'f' ? "\"bp\":\"e\"," : "", flows_,
                    points[i].first.process, points[i].first.thread),
        "}");
  }
}

std::string TraceEvents::text(const Json& about) const {
  int64_t origin = std::numeric_limits<int64_t>::max();
  std::vector<const Event*> order;
  for (const Event& event : events_) {
    origin = std::min(origin, event.time);
    order.push_back(&event);
  }
  // Of slices that begin together, the outer one comes first.
  std::stable_sort(order.begin(), order.end(), [](const Event* a, const Event* b) {
    return a->time != b->time ? a->time < b->time : a->length > b->length;
  });
  Json other = about;
  if (!events_.empty()) other["began_unix_seconds"] = static_cast<double>(origin) / 1e9;
  std::string out =
      "{\"displayTimeUnit\":\"ms\",\"otherData\":" + json_text(other) + ",\n\"traceEvents\":[";
  const char* between = "\n";
  for (const std::string& line : metadata_) {
    out += between + line;
    between = ",\n";
  }
  for (const Event* event : order) {
    out += between;
    out += event->head;
    out += microseconds(event->time - origin);
    out += event->tail;
    between = ",\n";
  }
  return out + "\n]}\n";
}

void TraceRow::follow(double& begin, double& end) {
  begin = std::max(begin, end_);
  end = std::max(begin, end);
  end_ = end;
}

std::size_t TraceLanes::place(double begin, double end) {
  const int64_t from = trace_nanoseconds(begin), to = trace_nanoseconds(end);
  for (std::size_t lane = 0;; ++lane) {
    if (lane == open_.size()) open_.emplace_back();
    std::vector<int64_t>& open = open_[lane];
    while (!open.empty() && open.back() <= from) open.pop_back();
    if (!open.empty() && open.back() < to) continue;
    open.push_back(to);
    return lane;
  }
}

void write_trace(const fs::path& path, const std::string& text) {
  std::error_code failed;
  if (path.has_parent_path()) fs::create_directories(path.parent_path(), failed);
  if (failed) {
    throw MachineError("{}: cannot be created: {}", path.parent_path().string(), failed.message());
  }
  write_file(path, path.extension() == ".gz" ? gzip(text) : text);
}

}  // namespace lockstep

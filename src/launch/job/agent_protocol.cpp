#include "launch/job/agent_protocol.h"

#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>

namespace lockstep {

namespace {

using FrameJson = nlohmann::json;

// Visits the fields of a message, both to write and to read them.
template <typename Message, typename Visitor>
void fields_of(Message& m,
               Visitor&& f) requires std::is_same_v<std::remove_const_t<Message>, AgentHello> {
  f("version", m.version);
  f("libtorch", m.libtorch);
  f("machine", m.machine);
  f("ssh_address", m.ssh_address);
  f("addresses", m.addresses);
  f("cores", m.cores);
  f("gpus", m.gpus);
  f("pid", m.process.pid);
  f("started", m.process.started);
}

template <typename Message, typename Visitor>
void fields_of(Message& m,
               Visitor&& f) requires std::is_same_v<std::remove_const_t<Message>, PrepareOrder> {
  f("folder", m.folder);
  f("program", m.program);
  f("interface", m.interface);
  f("towards", m.towards);
  f("power_command", m.power.command);
  f("power_after", m.power.after_seconds);
  f("power_run", m.power.run_folder);
  f("power_leads", m.power.leads);
  f("power_mirrored", m.power.mirrored);
  f("power_anyway", m.power.anyway);
}

template <typename Message, typename Visitor>
void fields_of(Message& m,
               Visitor&& f) requires std::is_same_v<std::remove_const_t<Message>, Prepared> {
  f("address", m.address);
  f("interface", m.interface);
}

template <typename Message, typename Visitor>
void fields_of(Message& m,
               Visitor&& f) requires std::is_same_v<std::remove_const_t<Message>, StartOrder> {
  f("command", m.command);
  f("first_rank", m.first_rank);
  f("ranks", m.ranks);
  f("size", m.size);
  f("attempt", m.attempt);
  f("run_id", m.run_id);
  f("secret", m.secret);
  f("host", m.host);
  f("address", m.address);
  f("interface", m.interface);
  f("master_address", m.master_address);
  f("master_port", m.master_port);
  f("environment", m.environment);
  f("grace", m.grace_milliseconds);
  f("pin", m.pin);
  f("terminal", m.terminal);
  f("rows", m.rows);
  f("columns", m.columns);
}

template <typename Message, typename Visitor>
void fields_of(Message& m,
               Visitor&& f) requires std::is_same_v<std::remove_const_t<Message>, StopOrder> {
  f("grace", m.grace_milliseconds);
  f("tell", m.tell);
}

template <typename Message, typename Visitor>
void fields_of(Message& m,
               Visitor&& f) requires std::is_same_v<std::remove_const_t<Message>, RankEndMessage> {
  f("rank", m.rank);
  f("status", m.status);
  f("told", m.told);
}

template <typename Message, typename Visitor>
void fields_of(Message& m,
               Visitor&& f) requires std::is_same_v<std::remove_const_t<Message>, RemoteFailure> {
  f("code", m.code);
  f("text", m.text);
}

template <typename Message, typename Visitor>
void fields_of(Message& m,
               Visitor&& f) requires std::is_same_v<std::remove_const_t<Message>, HostNotice> {
  f("cloud", m.cloud);
  f("action", m.action);
  f("deadline", m.deadline);
  f("seconds_left", m.seconds_left);
  f("withdrawn", m.withdrawn);
}

// Arguments and paths may be bytes that are not UTF-8. Each such byte becomes one code point and
// back, so that no text is refused or changed.
std::string widened(const std::string& text) {
  std::string out;
  for (unsigned char c : text) {
    if (c < 0x80) {
      out += static_cast<char>(c);
    } else {
      out += static_cast<char>(0xC0 | c >> 6);
      out += static_cast<char>(0x80 | (c & 0x3F));
    }
  }
  return out;
}

std::string narrowed(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x80 && i + 1 < text.size()) {
      c = static_cast<unsigned char>(c << 6 | (static_cast<unsigned char>(text[++i]) & 0x3F));
    }
    out += static_cast<char>(c);
  }
  return out;
}

template <typename Value>
FrameJson to_frame(const Value& value) {
  return value;
}
FrameJson to_frame(const std::string& value) { return widened(value); }
FrameJson to_frame(const std::vector<std::string>& values) {
  FrameJson out = FrameJson::array();
  for (const std::string& value : values) out.push_back(widened(value));
  return out;
}

template <typename Value>
void from_frame(const FrameJson& json, Value& value) {
  value = json.get<Value>();
}
void from_frame(const FrameJson& json, std::string& value) {
  value = narrowed(json.get<std::string>());
}
void from_frame(const FrameJson& json, std::vector<std::string>& values) {
  for (const FrameJson& item : json) values.push_back(narrowed(item.get<std::string>()));
}

template <typename Message>
std::string encode_fields(const Message& message) {
  FrameJson json;
  fields_of(message, [&](const char* name, const auto& value) { json[name] = to_frame(value); });
  return json.dump();
}

constexpr std::size_t kBytesHeader = 5;  // rank, stream

}  // namespace

std::string encode(const AgentHello& message) { return encode_fields(message); }
std::string encode(const PrepareOrder& message) { return encode_fields(message); }
std::string encode(const Prepared& message) { return encode_fields(message); }
std::string encode(const StartOrder& message) { return encode_fields(message); }
std::string encode(const StopOrder& message) { return encode_fields(message); }
std::string encode(const RankEndMessage& message) { return encode_fields(message); }
std::string encode(const RemoteFailure& message) { return encode_fields(message); }
std::string encode(const HostNotice& message) { return encode_fields(message); }

std::string encode(const RankBytes& message) {
  std::string out(kBytesHeader, '\0');
  auto rank = static_cast<int32_t>(message.rank);
  std::memcpy(out.data(), &rank, sizeof rank);
  out[sizeof rank] = static_cast<char>(message.stream);
  out += message.bytes;
  return out;
}

std::string encode_number(int64_t number) { return std::to_string(number); }

template <typename Message>
Message decode(std::string_view payload) {
  Message message;
  try {
    FrameJson json = FrameJson::parse(payload);
    fields_of(message, [&](const char* name, auto& value) { from_frame(json.at(name), value); });
  } catch (const FrameJson::exception& error) {
    throw MachineError("the other end's message cannot be read: {}", error.what());
  }
  return message;
}

template AgentHello decode<AgentHello>(std::string_view);
template PrepareOrder decode<PrepareOrder>(std::string_view);
template Prepared decode<Prepared>(std::string_view);
template StartOrder decode<StartOrder>(std::string_view);
template StopOrder decode<StopOrder>(std::string_view);
template RankEndMessage decode<RankEndMessage>(std::string_view);
template RemoteFailure decode<RemoteFailure>(std::string_view);
template HostNotice decode<HostNotice>(std::string_view);

template <>
RankBytes decode<RankBytes>(std::string_view payload) {
  if (payload.size() < kBytesHeader) throw MachineError("a message of output is cut short");
  int32_t rank = 0;
  std::memcpy(&rank, payload.data(), sizeof rank);
  Stream stream = payload[sizeof rank] == 0 ? kStandardOutput : kStandardError;
  return {rank, stream, payload.substr(kBytesHeader)};
}

int64_t decode_number(std::string_view payload) {
  int64_t number = 0;
  auto [end, failed] = std::from_chars(payload.data(), payload.data() + payload.size(), number);
  if (failed != std::errc() || end != payload.data() + payload.size()) {
    throw MachineError("the other end sent \"{}\" for a number", payload);
  }
  return number;
}

}  // namespace lockstep

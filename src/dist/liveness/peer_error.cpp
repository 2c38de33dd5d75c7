#include "dist/liveness/peer_error.h"

#include <c10/util/Exception.h>

#include <string_view>

#include "base/text.h"

namespace lockstep {
namespace {

// "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:547] Connection closed" -> without [...].
std::string_view without_source_place(std::string_view text) {
  if (!text.starts_with('[')) return text;
  std::size_t end = text.find(']');
  bool place = end != std::string_view::npos && text.substr(0, end).find(".c") != text.npos;
  return place ? trim(text.substr(end + 1)) : text;
}

}  // namespace

std::string plain_text_of(const std::exception& exception) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&exception);
  std::string_view text =
      torch_error != nullptr ? torch_error->what_without_backtrace() : exception.what();
  text = without_source_place(trim(text));
  // Only the first line is meant for a person; c10 appends frames to some texts.
  return std::string(trim(text.substr(0, text.find('\n'))));
}

bool says_timeout(const std::string& text) {
  for (std::string_view word : {"imed out", "imeout"}) {
    if (text.find(word) != std::string::npos) return true;
  }
  return false;
}

MachineError peer_error(const std::string& who, const std::string& what,
                        const std::exception& exception) {
  std::string text = plain_text_of(exception);
  bool timeout = says_timeout(text);
  MachineError error("{} {}", who,
                     timeout ? "waited in vain for the other ranks" : "lost the other ranks");
  error.add_context(what);
  error.set_cause(text);
  error.set_advice(
      timeout ? "a peer hangs, died or was cut off; look at the last line of each rank's log"
              : "a peer died or the network was cut; look at the first failure that the launcher "
                "names");
  return error;
}

MachineError verdict_error(const RankVerdict& verdict, const std::string& who,
                           const std::string& what) {
  MachineError error("{}", verdict.headline);
  error.add_context(who + " in " + what);
  error.set_cause(verdict.detail);
  error.set_advice(verdict.advice);
  return error;
}

}  // namespace lockstep

#include "dist/rank/meeting.h"

#include <fmt/format.h>
#include <openssl/crypto.h>

#include <charconv>
#include <vector>

#include "base/digest.h"
#include "base/error.h"
#include "base/text.h"

namespace lockstep {

namespace {

Proof proof_of(const Token& secret, std::string_view who, const Token& server,
               const Token& client) {
  std::string text(who);
  text.append(reinterpret_cast<const char*>(server.data()), server.size());
  text.append(reinterpret_cast<const char*>(client.data()), client.size());
  return hmac_sha256({reinterpret_cast<const char*>(secret.data()), secret.size()}, text);
}

}  // namespace

Proof client_proof(const Token& secret, const Token& server, const Token& client) {
  return proof_of(secret, "client", server, client);
}

Proof server_proof(const Token& secret, const Token& server, const Token& client) {
  return proof_of(secret, "server", server, client);
}

bool same_proof(const Proof& a, const Proof& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string to_text(const MeetingPlace& place) {
  return fmt::format("{} {} {}", place.address, place.port, to_hex(place.token));
}

MeetingPlace meeting_place_of(std::string_view text) {
  const std::vector<std::string_view> words = split_words(text);
  MeetingPlace out;
  bool right = words.size() == 3;
  if (right) {
    const auto parsed =
        std::from_chars(words[1].data(), words[1].data() + words[1].size(), out.port);
    right = parsed.ec == std::errc() && parsed.ptr == words[1].data() + words[1].size() &&
            out.port > 0 && out.port < 65536;
  }
  if (!right) throw MachineError("no place where a rank listens: \"{}\"", text);
  out.address = words[0];
  out.token = token_of_hex(words[2]);
  return out;
}

Visitor::Visitor(const Token& secret, const Token& token_of_place) {
  introduction_.nonce = random_token();
  introduction_.proof = client_proof(secret, token_of_place, introduction_.nonce);
  expected_ = server_proof(secret, token_of_place, introduction_.nonce);
}

bool Visitor::recognises(const Proof& answer) const { return same_proof(answer, expected_); }

std::optional<Proof> Doorkeeper::admit(const Introduction& introduction) {
  if (!same_proof(introduction.proof, client_proof(secret_, token_, introduction.nonce))) return {};
  {
    std::lock_guard lock(mutex_);
    if (!admitted_.insert(introduction.nonce).second) return {};
  }
  return server_proof(secret_, token_, introduction.nonce);
}

}  // namespace lockstep

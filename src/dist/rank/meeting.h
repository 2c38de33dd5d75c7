// How the ranks of one attempt recognise each other on a new connection, without sending what they
// recognise each other by.
//
// Both know the attempt's secret (LaunchEnvironment). Who accepts is known by random bytes, who
// connects by random bytes of its own, and each shows HMAC-SHA256 of the secret over its name and
// both ("client" or "server"; RFC 2104). An answer that was overheard is of no use on another
// connection.
//
// Where the others learn a listener's place from the store, its random bytes, the token, are part
// of the place, and a connection begins with one message, the Introduction, which is answered with
// a Proof. A run without a secret has the zero secret: then the token keeps out who cannot read
// the store.
#pragma once

#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/digest.h"
#include "dist/rank/token.h"

namespace lockstep {

using Proof = HmacSha256;

Proof client_proof(const Token& secret, const Token& server, const Token& client);
Proof server_proof(const Token& secret, const Token& server, const Token& client);
// Compares in constant time.
bool same_proof(const Proof& a, const Proof& b);

// Where a rank listens for others.
struct MeetingPlace {
  std::string address;  // numeric
  int port = 0;
  Token token = {};
};
std::string to_text(const MeetingPlace& place);  // "ADDRESS PORT TOKEN"
// Throws MachineError for other words.
MeetingPlace meeting_place_of(std::string_view text);

// The first bytes on a connection to a MeetingPlace; as it lies in memory.
struct Introduction {
  Token nonce = {};
  Proof proof = {};
};

// The side that connects.
class Visitor {
 public:
  Visitor(const Token& secret, const Token& token_of_place);
  const Introduction& introduction() const { return introduction_; }
  // Says whether `answer` is from one who knows the secret. In constant time.
  bool recognises(const Proof& answer) const;

 private:
  Introduction introduction_;
  Proof expected_;
};

// The side that accepts. Several threads may call it.
class Doorkeeper {
 public:
  explicit Doorkeeper(const Token& secret) : secret_(secret), token_(random_token()) {}
  const Token& token() const { return token_; }  // of this listener; no secret, see above
  // Returns the answer for one who knows the secret, once for each introduction; none for others,
  // and for one that is repeated.
  std::optional<Proof> admit(const Introduction& introduction);

 private:
  const Token secret_, token_;
  std::mutex mutex_;
  std::set<Token> admitted_;  // nonces, guarded by mutex_
};

}  // namespace lockstep

// The frames between the rendezvous store (store_server.h) and its clients, and the proof by which
// both ends of a new connection show that they know the secret of the attempt.
//
// A connection begins with a proof: the server sends 16 random bytes; the client answers with 16 of
// its own and HMAC-SHA256(secret, "client" + both), 48 bytes in all; the server answers with
// HMAC-SHA256(secret, "server" + both), 32 bytes. The secret itself is never sent, an answer that
// was overheard is of no use on another connection, and nothing of a stranger is parsed. After it
// each side sends frames: 4 bytes with the length of the body, little-endian, and the body.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dist/rank/token.h"

namespace lockstep {

enum class StoreVerb : uint8_t {
  kSet,         // KEY VALUE
  kGet,         // KEY: waits until it is there; answers its value
  kAdd,         // KEY, number: adds to it, from 0; answers the sum
  kErase,       // KEY: answers 1 if it was there
  kCheck,       // KEY...: answers 1 if all are there
  kWait,        // KEY...: waits until all are there
  kCompareSet,  // KEY EXPECTED WISHED: answers the value that is there afterwards
  kCount,       // answers the number of keys
};

// A request or an answer. Of an answer, `verb` is that of the request, and `done` is false when a
// wait was too long.
struct StoreFrame {
  StoreVerb verb = StoreVerb::kSet;
  bool done = true;
  int64_t number = 0;
  uint32_t wait_milliseconds = 0;  // of kGet and kWait
  std::vector<std::string> parts;  // keys and values
};

inline constexpr std::size_t kMostStoreBytes = 16 << 20;  // of one frame's body

std::string encode(const StoreFrame& frame);  // with its length
// Takes the first whole frame off `bytes`; none while it has not arrived. Throws MachineError for
// bytes that are no frame; no memory is taken for lengths that they only claim.
std::optional<StoreFrame> take_store_frame(std::string& bytes);

using Proof = std::array<unsigned char, 32>;

struct ClientProof {  // as it is sent
  Token nonce;
  Proof proof;
};

Proof client_proof(const Token& secret, const Token& server, const Token& client);
Proof server_proof(const Token& secret, const Token& server, const Token& client);
// Compares in constant time.
bool same_proof(const Proof& a, const Proof& b);

}  // namespace lockstep

// Asks another rank's PieceServer for pieces. Requests may be sent ahead; replies come in their
// order. One thread at a time.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "dist/pieces/piece_wire.h"

namespace lockstep {

class PieceClient {
 public:
  struct Options {
    std::string host;                      // of the server, for messages
    Token secret = {};                     // of the attempt
    std::chrono::milliseconds silence{0};  // without a byte after which it is lost; 0: no limit
    const std::atomic<bool>& stopping;     // set by another thread: calls end with MachineError
  };
  // `meeting`: of the server. Throws MachineError when it cannot be reached or
  // does not show that it knows the secret.
  PieceClient(const std::string& meeting, const Options& options);

  // Throw MachineError, naming the host, when the connection is over.
  void ask(const DataPiece& piece);
  // Receives the oldest piece asked for. Returns why the server does not have it; empty: `out` has
  // its bytes.
  std::string receive(const DataPiece& piece, std::vector<std::byte>& out);

 private:
  void require(Moved moved) const;

  Options options_;
  Descriptor socket_;
};

}  // namespace lockstep

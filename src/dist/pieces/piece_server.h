// Sends pieces of what this rank has to other ranks of the run, each on a TCP connection of its own
// on which both ends show that they know the attempt's secret. The ranks learn the place through
// the World.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/descriptor.h"
#include "dist/pieces/piece_wire.h"

namespace lockstep {

// Returns the bytes of a piece, in memory that lives until the next call or in `space`. Called on
// several threads. An Error that it throws is told to who asked.
using ServePiece =
    std::function<std::span<const std::byte>(const DataPiece&, std::vector<std::byte>& space)>;

class PieceServer {
 public:
  // Listens on an address of this machine, on any free port. `secret`: of the attempt. Throws
  // MachineError.
  PieceServer(const std::string& address, const Token& secret, ServePiece serve);
  ~PieceServer();  // ends the connections; REQUIRES that `serve` returns
  PieceServer(const PieceServer&) = delete;
  PieceServer& operator=(const PieceServer&) = delete;

  const std::string& meeting() const { return meeting_; }  // a MeetingPlace, for PieceClient

 private:
  void accept_all();
  void converse(const Descriptor& socket);
  bool greet(int socket);

  ServePiece serve_;
  Doorkeeper door_;
  Descriptor listener_;
  std::string meeting_;
  std::atomic<bool> stopping_ = false;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  int conversations_ = 0;
  std::thread acceptor_;  // last: uses all the others
};

}  // namespace lockstep

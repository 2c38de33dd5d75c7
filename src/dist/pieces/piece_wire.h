// What piece_server.h and piece_client.h send each other: a greeting, which the server answers with
// its Proof (dist/rank/meeting.h), then requests and, in their order, replies. Plain structs as
// they lie in memory: all ranks run the same build.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "dist/rank/meeting.h"

namespace lockstep {

// A part of something that is counted in files: of a file the bytes from `at` on, or its item `at`.
struct DataPiece {
  uint32_t file = 0;
  uint32_t bytes = 0;
  uint64_t at = 0;

  bool operator==(const DataPiece&) const = default;
};

struct PieceGreeting {
  Introduction introduction;
  char magic[8] = {'L', 'S', 'P', 'I', 'E', 'C', 'E', '2'};
};

struct PieceReply {
  uint32_t failed = 0;  // 1: the bytes are the text of an error
  uint32_t bytes = 0;
};

// How long a transfer waits for the other side.
struct PiecePatience {
  const std::atomic<bool>& stopping;  // gives up when it is set
  std::chrono::milliseconds silence;  // without a byte; 0: no limit
};

enum class Moved { kAll, kEnded, kSilent, kStopped };

// Send or receive all bytes on a socket that does not block. kEnded: the connection is over.
Moved send_all(int socket, const void* data, std::size_t size, const PiecePatience& patience);
Moved receive_all(int socket, void* data, std::size_t size, const PiecePatience& patience);

}  // namespace lockstep

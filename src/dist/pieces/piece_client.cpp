#include "dist/pieces/piece_client.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include "base/error.h"
#include "dist/rank/network.h"

namespace lockstep {

namespace {

constexpr double kConnectSeconds = 15;
constexpr uint32_t kLongestText = 1 << 16;  // of an error

}  // namespace

PieceClient::PieceClient(const std::string& meeting, const Options& options) : options_(options) {
  const MeetingPlace place = meeting_place_of(meeting);
  socket_ = Descriptor(
      connect_to(place.address, place.port, kConnectSeconds, "the data of " + options_.host));
  send_promptly(socket_.get());
  const Visitor visitor(options.secret, place.token);
  PieceGreeting greeting;
  greeting.introduction = visitor.introduction();
  const PiecePatience patience{options_.stopping, options_.silence};
  require(send_all(socket_.get(), &greeting, sizeof greeting, patience));
  Proof answer;
  require(receive_all(socket_.get(), answer.data(), answer.size(), patience));
  if (!visitor.recognises(answer)) {
    throw MachineError("what answers in place of {} is no rank of this run", options_.host);
  }
}

void PieceClient::require(Moved moved) const {
  if (moved == Moved::kAll) return;
  if (moved == Moved::kSilent) {
    const std::chrono::duration<double> limit = options_.silence;
    throw MachineError("{} sent no data for {:.0f} s", options_.host, limit.count());
  }
  throw MachineError("{} ended the connection that sends data", options_.host);
}

void PieceClient::ask(const DataPiece& piece) {
  require(send_all(socket_.get(), &piece, sizeof piece, {options_.stopping, options_.silence}));
}

std::string PieceClient::receive(const DataPiece& piece, std::vector<std::byte>& out) {
  const PiecePatience patience{options_.stopping, options_.silence};
  PieceReply reply;
  require(receive_all(socket_.get(), &reply, sizeof reply, patience));
  if (reply.failed != 0) {
    std::string text(std::min(reply.bytes, kLongestText), '\0');
    require(receive_all(socket_.get(), text.data(), text.size(), patience));
    return text.empty() ? "it failed" : text;
  }
  if (reply.bytes != piece.bytes) {
    throw MachineError("{} sent {} bytes of data, asked were {}", options_.host, reply.bytes,
                       piece.bytes);
  }
  out.resize(reply.bytes);
  require(receive_all(socket_.get(), out.data(), out.size(), patience));
  return "";
}

}  // namespace lockstep

// What the metadata servers of three clouds say of a machine's end.
#include "launch/job/spot_notice.h"
#include "fuzz.h"

FUZZ(bytes) {
  const lockstep::HttpAnswer answer{200, std::string(bytes)};
  lockstep::use(lockstep::read_aws_notice(answer, 1.7e9));
  lockstep::use(lockstep::read_google_notice(answer, 1.7e9));
  lockstep::use(lockstep::read_azure_notice(answer, "machine_0", 1.7e9));
}

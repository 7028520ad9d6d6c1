package podagent

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/windlass-dev/windlass/api/wire"
	"github.com/windlass-dev/windlass/pkg/podagent/core"
)

// A message that cannot be encoded ends the stream, and is the first on the next one.
func TestAGoodbyeCanBeSentWhateverItsDetail(t *testing.T) {
	goodbye := toWire(core.Goodbye{Reason: core.ReasonCallBroken, Detail: "caf\xe9"}, identity{}, "", wire.AgentProtocols)
	if _, err := proto.Marshal(goodbye); err != nil {
		t.Error(err)
	}
	if got := goodbye.GetGoodbye().GetDetail(); got != "caf?" {
		t.Errorf("the detail is %q", got)
	}
}

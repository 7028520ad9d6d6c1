package podagent

import (
	"testing"

	"github.com/windlass-dev/windlass/pkg/podagent/core"
)

type (
	newEffect          struct{ core.Effect }
	newEffectAtGateway struct{ core.GatewayEffect }
	newEffectAtNode    struct{ core.NodeEffect }
)

func TestNoEffectIsDroppedInSilence(t *testing.T) {
	for _, e := range []core.Effect{newEffect{}, newEffectAtGateway{}, newEffectAtNode{}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("nobody notices that nothing carries out a %T", e)
				}
			}()
			New(config(), Deps{}).carryOut(e, nil)
		}()
	}
}

package provisioner

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

func TestAnEndingSaysWhoEndsTheInstanceAndWhoseFaultItIs(t *testing.T) {
	now := time.Unix(1000, 0)
	soon := now.Add(time.Minute)
	byItself, stopped := Ending{Within: time.Minute}, Ending{}
	broken := Ending{Within: time.Minute, Code: v1alpha1.ReasonCallBroken, Reason: "it broke"}
	unstarted := Ending{Code: v1alpha1.ReasonStartTimeout, Reason: "nothing listens"}
	for name, tc := range map[string]struct {
		how  []Ending
		want Instance
	}{
		"it leaves":                       {[]Ending{byItself}, Instance{State: Leaving, EndBy: soon}},
		"it leaves, said twice":           {[]Ending{byItself, {Within: time.Hour}}, Instance{State: Leaving, EndBy: soon}},
		"it is stopped":                   {[]Ending{stopped}, Instance{State: Leaving}},
		"it leaves and is stopped":        {[]Ending{byItself, stopped}, Instance{State: Leaving}},
		"its function broke":              {[]Ending{broken}, Instance{State: Leaving, EndBy: soon, AgentReason: "it broke", AgentCode: v1alpha1.ReasonCallBroken}},
		"its function broke as it left":   {[]Ending{byItself, broken}, Instance{State: Leaving, EndBy: soon, AgentReason: "it broke", AgentCode: v1alpha1.ReasonCallBroken}},
		"it did not start":                {[]Ending{unstarted}, Instance{Cause: "nothing listens", CauseCode: v1alpha1.ReasonStartTimeout}},
		"it did not start and is stopped": {[]Ending{unstarted, stopped}, Instance{Cause: "nothing listens", CauseCode: v1alpha1.ReasonStartTimeout}},
	} {
		in := Instance{}
		for _, how := range tc.how {
			in.markEnding(how, now)
		}
		if diff := cmp.Diff(tc.want, in); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

package invocation

import (
	"encoding/json"
	"testing"
	"time"
)

func TestIDsAndKeysAsText(t *testing.T) {
	now := time.UnixMilli(1_772_366_400_123)
	type named struct {
		ID  ID
		Key FunctionKey
	}
	in := named{NewID(now), FunctionKey{Namespace: "team", Name: "hello"}}
	text, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"ID":"` + in.ID.String() + `","Key":"team/hello"}`; string(text) != want {
		t.Errorf("it is %s, want %s", text, want)
	}
	var out named
	if err := json.Unmarshal(text, &out); err != nil || out != in {
		t.Errorf("it became %+v, %v", out, err)
	}
	for _, wrong := range []string{`{"ID":"123"}`, `{"Key":"hello"}`} {
		if json.Unmarshal([]byte(wrong), &out) == nil {
			t.Errorf("%s was read", wrong)
		}
	}
	if !in.ID.Time().Equal(now) {
		t.Errorf("it was minted at %v, and says %v", now, in.ID.Time())
	}
}

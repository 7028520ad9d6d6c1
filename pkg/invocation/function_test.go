package invocation

import "testing"

func TestAnInstanceIsToldWhoItIs(t *testing.T) {
	got := ResourceAttributes(FunctionKey{Namespace: "team", Name: "web"}, "abc", "00000001-000002")
	if want := "faas.name=web,faas.version=abc,faas.instance=00000001-000002,k8s.namespace.name=team"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

package controller

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

func TestConfigNamesWhatIsMissing(t *testing.T) {
	err := Config{Runtimes: []v1alpha1.ClusterRuntime{{ObjectMeta: metav1.ObjectMeta{Name: "r"}}}}.Validate()
	if err == nil {
		t.Fatal("it is valid")
	}
	want := "controller: Namespace must be set\ncontroller: SchedulerService must be set\n" +
		"controller: ClusterRuntime \"r\": spec.image: Required value: write for example image: example.com/team/runtime:1.0"
	if err.Error() != want {
		t.Errorf("got %s", err)
	}
}

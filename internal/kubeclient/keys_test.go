package kubeclient

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/windlass-dev/windlass/pkg/gateway/auth"
)

func TestKeysNeedNoGatewayThatIsReady(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "windlass", Name: KeysSecret}, Data: map[string][]byte{auth.KeysFileName: []byte("keys")}}
	kube := fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(gatewayPod("a", corev1.ConditionFalse), secret).Build()
	list, err := NewWith(Deps{Context: "test", Kube: kube}).Keys(t.Context(), "")
	if err != nil || string(list) != "keys" {
		t.Errorf("the list is %q, %v", list, err)
	}
}

func TestKeysOfAnUnknownNamespaceNameTheirFlag(t *testing.T) {
	c := NewWith(Deps{Context: "test", Kube: fake.NewClientBuilder().WithScheme(Scheme()).Build()})
	_, err := c.Keys(t.Context(), "")
	wantError(t, err, ReasonNoPod, "Windlass is not installed in any namespace", "--windlass-namespace")
	if strings.Contains(err.Error(), "--gateway") {
		t.Errorf("the error names a flag of others: %v", err)
	}
}

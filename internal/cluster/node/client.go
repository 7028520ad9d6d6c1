package node

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// This file makes a client of the API server that knows what a node agent reads of pods, and nothing else. The usual ones know
// all types of Kubernetes, which takes more memory than the node agent.

// newClient makes the client of the pod's service account, or else of the kubeconfig.
func newClient() (rest.Interface, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("no way to the API server: %w: run in a pod with a service account, or set KUBECONFIG", err)
	}
	config.UserAgent = "windlass"
	// What is sent is bounded where it is decided.
	config.QPS = -1
	return clientOf(config)
}

func clientOf(config *rest.Config) (rest.Interface, error) {
	version := schema.GroupVersion{Version: "v1"}
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(version.WithKind("Pod"), &pod{})
	scheme.AddKnownTypeWithName(version.WithKind("PodList"), &podList{})
	metav1.AddToGroupVersion(scheme, version)
	config.APIPath, config.GroupVersion = "/api", &version
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	return rest.RESTClientFor(config)
}

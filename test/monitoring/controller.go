package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/test/lab"
)

const (
	// controllerAddr is where the controller tells of itself, in the lab's own
	// network.
	controllerAddr = "127.0.0.1:8081"
	// schedulersService is the Service by which it finds schedulers.
	schedulersService = "schedulers"
)

// startController starts a controller, which ends with the lab. The lab has none,
// because no promise to callers depends on one; dashboards show what it does.
func (w *world) startController(ctx context.Context) error {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: schedulersService, Labels: map[string]string{discoveryv1.LabelServiceName: schedulersService}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new("wire"), Port: new(int32(9443))}},
	}
	for _, m := range w.Schedulers {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{m.Addr.String()}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
		})
	}
	if _, err := w.Cluster.Core.DiscoveryV1().EndpointSlices(lab.Namespace).Create(ctx, slice, metav1.CreateOptions{}); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(w.Config.Dir, "logs", "controller.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(w.Config.Program("windlass"), "controller", "--leader-elect=false", "--log-format=text",
		"--ops-listen="+controllerAddr, "--tls-dir="+w.Config.TLSDir("controller"), "--tls-domain="+string(lab.Domain),
		"--pod-namespace="+lab.Namespace, "--schedulers="+schedulersService)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+w.Config.Kubeconfig())
	cmd.Stdout, cmd.Stderr = log, log
	return cmd.Start()
}

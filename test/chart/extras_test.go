//go:build apiserver

package chart

import (
	"testing"
)

func TestEveryObjectHasTheCommonAnnotations(t *testing.T) {
	for name, args := range scenarios {
		t.Run(name, func(t *testing.T) {
			seen := 0
			for _, object := range render(t, append([]string{"--set", "commonAnnotations.owner=platform"}, args...)...) {
				seen++
				if object.GetAnnotations()["owner"] != "platform" {
					t.Errorf("%s has the annotations %v", title(object), object.GetAnnotations())
				}
			}
			if seen < 20 {
				t.Errorf("saw %d objects only", seen)
			}
		})
	}
}

func TestAnnotationsOfItsOwnComeFirst(t *testing.T) {
	objects := render(t, "--set", `commonAnnotations.team=all,gateway.service.annotations.team=mine,gateway.deploymentAnnotations.team=deployed,commonAnnotations.helm\.sh/hook-weight=a`)
	service, job := find(t, objects, "Service", "windlass-gateway"), find(t, objects, "Job", "windlass-cleanup")
	if got := service.GetAnnotations()["team"]; got != "mine" {
		t.Errorf("the Service has %q", got)
	}
	gateway := find(t, objects, "Deployment", "windlass-gateway")
	if got := gateway.GetAnnotations()["team"]; got != "deployed" {
		t.Errorf("the Deployment has %q", got)
	}
	if got := job.GetAnnotations()["helm.sh/hook-weight"]; got != "0" {
		t.Errorf("the Job has the weight %q", got)
	}
	if pod, _ := podOf(t, gateway); pod.Annotations["team"] != "" {
		t.Error("the pods have annotations of objects: with each change they would all be replaced")
	}
}

func TestEachComponentHasItsExtras(t *testing.T) {
	for component, kind := range map[string]string{"gateway": "Deployment", "scheduler": "Deployment", "controller": "Deployment", "etcd": "StatefulSet"} {
		pod, _ := podOf(t, find(t, render(t, "--set", component+".extraVolumes[0].name=more,"+component+".extraVolumes[0].configMap.name=mine,"+
			component+".extraVolumeMounts[0].name=more,"+component+".extraVolumeMounts[0].mountPath=/more,"+
			component+".podSecurityContext.runAsUser=null,"+component+".podSecurityContext.supplementalGroups={7}"), kind, "windlass-"+component))
		volume, mount := last(pod.Spec.Volumes), last(pod.Spec.Containers[0].VolumeMounts)
		if volume.Name != "more" || volume.ConfigMap == nil || mount.Name != "more" || mount.MountPath != "/more" {
			t.Errorf("the last volume and mount of %s are %+v and %+v", component, volume, mount)
		}
		security := pod.Spec.SecurityContext
		if security.RunAsUser != nil || len(security.SupplementalGroups) != 1 || !*security.RunAsNonRoot {
			t.Errorf("%s has the security context %+v", component, security)
		}
	}
}

func last[T any](list []T) T { return list[len(list)-1] }

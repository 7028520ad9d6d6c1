package cluster_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

var _ = Describe("An upgrade", Serial, func() {
	It("replaces all programs under load, keeps the instances, and fails no call, and so does the way back", func(ctx SpecContext) {
		runLogReachable()
		next := shared.Tag + "-next"
		loadVersion(ctx, next)
		c := newCounted(ctx, 5)
		before, started := append(c.living("http"), c.living("event")...), programs(ctx)
		DeferCleanup(func(ctx SpecContext) {
			if programs(ctx)["gateway"] != started["gateway"] {
				_, err := helm(ctx, "rollback", "windlass", "--namespace", releaseNamespace, "--wait", "--timeout", "3m")
				Expect(err).NotTo(HaveOccurred())
			}
		})
		t := c.start(2)
		c.flows(t)

		By("upgrading")
		began := time.Now()
		_, err := helm(ctx, "upgrade", "windlass", filepath.Join(checkout, "charts", "windlass"), "--namespace", releaseNamespace,
			"--reuse-values", "--set-string", "image.tag="+next, "--set-string", "agent.image.tag="+next, "--wait", "--timeout", "3m")
		Expect(err).NotTo(HaveOccurred())
		took := time.Since(began)
		for _, name := range []string{"gateway", "scheduler", "controller"} {
			Expect(programs(ctx)[name]).To(Equal(reference("windlass", next)))
		}
		Expect(programs(ctx)["etcd"]).To(Equal(started["etcd"]))
		r := c.report("helm upgrade in "+took.Round(time.Second).String(), t)
		Expect(r.failed()).To(BeEmpty(), r.String())

		By("keeping the instances, with the agents that they have")
		after := append(c.living("http"), c.living("event")...)
		Expect(namesOf(after)).To(ContainElements(namesOf(before)))
		for _, pod := range after {
			if contains(before, pod) {
				Expect(agentOf(pod)).To(Equal(image("podagent")), pod.Name)
			}
		}
		By("giving new instances the new agent")
		c.warm(httpd("young"))
		Expect(agentOf(c.living("young")[0])).To(Equal(reference("podagent", next)))

		By("rolling back")
		t = c.start(2)
		c.flows(t)
		_, err = helm(ctx, "rollback", "windlass", "--namespace", releaseNamespace, "--wait", "--timeout", "3m")
		Expect(err).NotTo(HaveOccurred())
		Expect(programs(ctx)).To(Equal(started))
		r = c.report("helm rollback", t)
		Expect(r.failed()).To(BeEmpty(), r.String())
		Expect(namesOf(append(c.living("http"), c.living("event")...))).To(ContainElements(namesOf(before)))
	})
})

// loadVersion builds the programs of the checkout under another tag, which is
// also the version that they say to be, and loads them into our cluster.
func loadVersion(ctx context.Context, tag string) {
	GinkgoHelper()
	folder := GinkgoT().TempDir()
	cmd := exec.CommandContext(ctx, "go", "run", ".", "-out", folder, "-tag", tag, "windlass", "podagent")
	cmd.Dir = filepath.Join(checkout, "images", "build")
	_, err := capture(cmd)
	Expect(err).NotTo(HaveOccurred())
	for _, name := range []string{"windlass", "podagent"} {
		Expect(own.LoadImage(ctx, filepath.Join(folder, name+".tar"))).To(Succeed())
	}
}

// reference is image with another tag.
func reference(name, tag string) string {
	in := shared
	in.Tag = tag
	return in.Registry + "/" + name + ":" + in.Tag
}

// programs are the images of the parts of the release, of the pods that are not
// ending.
func programs(ctx context.Context) map[string]string {
	GinkgoHelper()
	images := map[string]string{}
	for _, name := range []string{"gateway", "scheduler", "controller", "etcd"} {
		for _, pod := range component(ctx, name) {
			if known := images[name]; known != "" {
				Expect(pod.Spec.Containers[0].Image).To(Equal(known), "all pods of %s are of one version", name)
			}
			images[name] = pod.Spec.Containers[0].Image
		}
	}
	return images
}

func agentOf(pod corev1.Pod) string {
	for _, container := range pod.Spec.Containers {
		if container.Name == "agent" {
			return container.Image
		}
	}
	return ""
}

func contains(pods []corev1.Pod, pod corev1.Pod) bool {
	for _, p := range pods {
		if p.UID == pod.UID {
			return true
		}
	}
	return false
}

// savedValues writes the values of the release into a file.
func savedValues(ctx context.Context) string {
	GinkgoHelper()
	text, err := helm(ctx, "get", "values", "windlass", "--namespace", releaseNamespace, "--output", "json")
	Expect(err).NotTo(HaveOccurred())
	Expect(json.Valid([]byte(text))).To(BeTrue(), text)
	file := filepath.Join(GinkgoT().TempDir(), "values.json")
	Expect(os.WriteFile(file, []byte(text), 0o600)).To(Succeed())
	return file
}

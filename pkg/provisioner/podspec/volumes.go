package podspec

import (
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
)

const (
	volumeAgentToken   = "agent-token"
	volumeTmp          = "tmp"
	volumeCode         = "code"
	volumeAccountToken = "account-token"
	// mountPrefix begins the names of volumes for the function's own mounts.
	mountPrefix = "mount-"

	agentTokenDir   = "/var/run/secrets/windlass.dev"
	accountTokenDir = "/var/run/secrets/kubernetes.io/serviceaccount"
	tokenFile       = "token"
	nodeTokenFile   = "node-token"

	// tokenSeconds is how long a token holds. The kubelet replaces it when 80
	// percent of that have passed.
	tokenSeconds int64 = 3600
)

func volumes(in Input) []corev1.Volume {
	audience := in.Config.TokenAudience
	if audience == "" {
		audience = DefaultTokenAudience
	}
	all := []corev1.Volume{
		{Name: volumeAgentToken, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: agentTokens(in.Config, audience),
		}}},
		{Name: volumeTmp, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{
			SizeLimit: new(tmpLimit.DeepCopy()),
		}}},
	}
	if code, ok := codeVolume(in); ok {
		all = append(all, code)
	}
	if in.Function.Spec.Template.ServiceAccountName != "" {
		all = append(all, accountVolume())
	}
	for _, m := range in.Function.Spec.Template.Mounts {
		all = append(all, corev1.Volume{Name: mountPrefix + m.Name, VolumeSource: mountSource(&m)})
	}
	return all
}

// mountSource is what a mount of the function's own holds.
func mountSource(m *v1alpha1.Mount) corev1.VolumeSource {
	switch {
	case m.Secret != nil:
		return corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: m.Secret.SecretName, Optional: optional(m.Secret.Optional)}}
	case m.ConfigMap != nil:
		return corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: named(m.ConfigMap.Name), Optional: optional(m.ConfigMap.Optional),
		}}
	case m.PersistentVolumeClaim != nil:
		return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{
			ClaimName: m.PersistentVolumeClaim.ClaimName, ReadOnly: m.ReadOnly,
		}}
	case m.EmptyDir != nil:
		empty := &corev1.EmptyDirVolumeSource{Medium: m.EmptyDir.Medium}
		if m.EmptyDir.SizeLimit != nil {
			empty.SizeLimit = new(m.EmptyDir.SizeLimit.DeepCopy())
		}
		return corev1.VolumeSource{EmptyDir: empty}
	}
	// The API server, which lets no other through, refuses the pod.
	return corev1.VolumeSource{}
}

// writesClaim reports whether the function may write to a claim. Volumes of claims belong to
// root unless the pod has a group for them.
func writesClaim(f *v1alpha1.Function) bool {
	return slices.ContainsFunc(f.Spec.Template.Mounts, func(m v1alpha1.Mount) bool {
		return m.PersistentVolumeClaim != nil && !m.ReadOnly
	})
}

// emptyDisk is how much the function's own empty folders may hold on the disk.
func emptyDisk(f *v1alpha1.Function) resource.Quantity {
	sum := resource.Quantity{Format: resource.BinarySI}
	for _, m := range f.Spec.Template.Mounts {
		if m.EmptyDir != nil && m.EmptyDir.Medium == "" && m.EmptyDir.SizeLimit != nil {
			sum.Add(*m.EmptyDir.SizeLimit)
		}
	}
	return sum
}

// VolumeTitle is what people know the volume of a pod as: the field that asks for it.
func VolumeTitle(name string) string {
	if mount, is := strings.CutPrefix(name, mountPrefix); is {
		return "the mount " + mount
	}
	if name == volumeCode {
		return "code.configMapRef"
	}
	return "the volume " + name
}

func functionMounts(f *v1alpha1.Function) []corev1.VolumeMount {
	mounts := []corev1.VolumeMount{{Name: volumeTmp, MountPath: "/tmp"}}
	if f.Spec.Template.Code != nil {
		mounts = append(mounts, corev1.VolumeMount{Name: volumeCode, MountPath: TaskRoot, ReadOnly: true})
	}
	if f.Spec.Template.ServiceAccountName != "" {
		mounts = append(mounts, corev1.VolumeMount{Name: volumeAccountToken, MountPath: accountTokenDir, ReadOnly: true})
	}
	for _, m := range f.Spec.Template.Mounts {
		mounts = append(mounts, corev1.VolumeMount{
			Name: mountPrefix + m.Name, MountPath: m.MountPath, SubPath: m.SubPath,
			ReadOnly: m.ReadOnly || m.Secret != nil || m.ConfigMap != nil,
		})
	}
	return mounts
}

func codeVolume(in Input) (corev1.Volume, bool) {
	code := in.Function.Spec.Template.Code
	switch {
	case code == nil:
		return corev1.Volume{}, false
	case code.ConfigMapRef.Name != "":
		return corev1.Volume{Name: volumeCode, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: code.ConfigMapRef.Name},
		}}}, true
	}
	return corev1.Volume{Name: volumeCode, VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{
		Items: []corev1.DownwardAPIVolumeFile{{
			Path:     path.Clean(codeFile(in.Function.Spec.Template.Handler, in.Runtime.Spec.FileExtension)),
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['" + wellknown.AnnotationCode + "']"},
		}},
	}}}, true
}

// accountVolume is what the client libraries of Kubernetes look for.
func accountVolume() corev1.Volume {
	return corev1.Volume{Name: volumeAccountToken, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{
			token(""),
			{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
				Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
			}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{
				Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"},
			}}}},
		},
	}}}
}

// agentTokens are the agent's proofs: one for schedulers, and if there are node agents another one,
// so that no node agent can pass for an instance.
func agentTokens(c Config, audience string) []corev1.VolumeProjection {
	tokens := []corev1.VolumeProjection{token(audience)}
	if c.NodeAddr != "" {
		tokens = append(tokens, tokenAt(c.NodeTokenAudience, nodeTokenFile))
	}
	return tokens
}

func token(audience string) corev1.VolumeProjection { return tokenAt(audience, tokenFile) }

func tokenAt(audience, file string) corev1.VolumeProjection {
	return corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
		Audience: audience, ExpirationSeconds: new(tokenSeconds), Path: file,
	}}
}

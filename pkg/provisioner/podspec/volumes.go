package podspec

import (
	"path"

	corev1 "k8s.io/api/core/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

const (
	volumeAgentToken   = "agent-token"
	volumeTmp          = "tmp"
	volumeCode         = "code"
	volumeAccountToken = "account-token"

	agentTokenDir   = "/var/run/secrets/windlass.dev"
	accountTokenDir = "/var/run/secrets/kubernetes.io/serviceaccount"
	tokenFile       = "token"

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
			Sources: []corev1.VolumeProjection{token(audience)},
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
	return all
}

func functionMounts(f *v1alpha1.Function) []corev1.VolumeMount {
	mounts := []corev1.VolumeMount{{Name: volumeTmp, MountPath: "/tmp"}}
	if f.Spec.Template.Code != nil {
		mounts = append(mounts, corev1.VolumeMount{Name: volumeCode, MountPath: TaskRoot, ReadOnly: true})
	}
	if f.Spec.Template.ServiceAccountName != "" {
		mounts = append(mounts, corev1.VolumeMount{Name: volumeAccountToken, MountPath: accountTokenDir, ReadOnly: true})
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
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['" + v1alpha1.AnnotationCode + "']"},
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

func token(audience string) corev1.VolumeProjection {
	return corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
		Audience: audience, ExpirationSeconds: new(tokenSeconds), Path: tokenFile,
	}}
}

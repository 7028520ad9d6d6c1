package main

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

func TestARegistryHasASignatureOfWhatIsPushed(t *testing.T) {
	r, _ := pushedChart(t)
	tag := tagOf(t, r.registry+"/charts/windlass:0.1.0")
	if err := verify(tag, &r.key.PublicKey); err != nil {
		t.Error(err)
	}
	other, _ := newKey(t)
	if err := verify(tag, &other.PublicKey); !errors.Is(err, errSignature) {
		t.Errorf("with the key of somebody else: %v", err)
	}
	for _, f := range forgeries {
		forged := tagOf(t, r.registry+"/"+f.name+"/charts/windlass:0.1.0")
		f.forge(t, tag, forged)
		if err := verify(forged, &r.key.PublicKey); err == nil || !errors.Is(err, f.want) {
			t.Errorf("%s: %v, want %v", f.name, err, f.want)
		}
	}
}

func TestASignatureNamesTagAndDigest(t *testing.T) {
	r, _ := pushedChart(t)
	tag := tagOf(t, r.registry+"/charts/windlass:0.1.0")
	digest, err := r.artefact.Digest()
	if err != nil {
		t.Fatal(err)
	}
	image, err := remote.Image(signatureTag(tag.Repository, digest))
	if err != nil {
		t.Fatal(err)
	}
	payload, _, err := signed(image)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`{"critical":{"identity":{"docker-reference":"%s/charts/windlass:0.1.0"},`+
		`"image":{"docker-manifest-digest":"%s"},"type":"cosign container image signature"},"optional":null}`, r.registry, digest)
	if string(payload) != want {
		t.Errorf("signed is\n%s\nwant\n%s", payload, want)
	}
	again, err := signatureOf(r.key, tag, digest)
	if err != nil {
		t.Fatal(err)
	}
	first, _ := image.Digest()
	if second, err := again.Digest(); err != nil || first != second {
		t.Errorf("signed again it is %v (%v), want %v", second, err, first)
	}
}

var (
	errUnsigned  = errors.New("no signature")
	errSignature = errors.New("not a signature by this key")
	errClaim     = errors.New("a signature of something else")
)

// verify checks what a registry has under a tag as cosign's specification says, by the
// standard library alone.
func verify(tag name.Tag, key *ecdsa.PublicKey) error {
	found, err := remote.Head(tag)
	if err != nil {
		return err
	}
	image, err := remote.Image(signatureTag(tag.Repository, found.Digest))
	if err != nil {
		return fmt.Errorf("%w: %w", errUnsigned, err)
	}
	payload, signature, err := signed(image)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(payload)
	if !ecdsa.VerifyASN1(key, sum[:], signature) {
		return errSignature
	}
	var c claim
	if err := json.Unmarshal(payload, &c); err != nil {
		return err
	}
	if c.Critical.Type != signedType || c.Critical.Image.Digest != found.Digest.String() {
		return errClaim
	}
	return nil
}

// signed is what the image of a signature holds.
func signed(image v1.Image) (payload, signature []byte, err error) {
	manifest, err := image.Manifest()
	if err != nil {
		return nil, nil, err
	}
	if len(manifest.Layers) != 1 || manifest.Layers[0].MediaType != signedPayload {
		return nil, nil, fmt.Errorf("the layers are %+v, want one of %s", manifest.Layers, signedPayload)
	}
	if signature, err = base64.StdEncoding.DecodeString(manifest.Layers[0].Annotations[signatureAnnotation]); err != nil {
		return nil, nil, err
	}
	layers, err := image.Layers()
	if err != nil {
		return nil, nil, err
	}
	content, err := layers[0].Compressed()
	if err != nil {
		return nil, nil, err
	}
	defer content.Close()
	payload, err = io.ReadAll(content)
	return payload, signature, err
}

// forgery is what somebody without the key, who may write to the registry, can put in the
// place of what is signed: something else under the tag, and a signature beside it.
type forgery struct {
	name string
	want error
	// sign makes that signature; nil makes none.
	sign func(t *testing.T, genuine v1.Image, forged name.Tag, digest v1.Hash) v1.Image
}

var forgeries = []forgery{
	{name: "unsigned", want: errUnsigned},
	{"signed-by-another-key", errSignature, func(t *testing.T, _ v1.Image, forged name.Tag, digest v1.Hash) v1.Image {
		t.Helper()
		key, _ := newKey(t)
		signature, err := signatureOf(key, forged, digest)
		if err != nil {
			t.Fatal(err)
		}
		return signature
	}},
	{"borrowed-signature", errClaim, func(_ *testing.T, genuine v1.Image, _ name.Tag, _ v1.Hash) v1.Image { return genuine }},
	{"altered-claim", errSignature, func(t *testing.T, genuine v1.Image, _ name.Tag, digest v1.Hash) v1.Image {
		t.Helper()
		payload, signature, err := signed(genuine)
		if err != nil {
			t.Fatal(err)
		}
		var c claim
		if err := json.Unmarshal(payload, &c); err != nil {
			t.Fatal(err)
		}
		altered := strings.Replace(string(payload), c.Critical.Image.Digest, digest.String(), 1)
		image, err := mutate.Append(empty.Image, mutate.Addendum{
			Layer:       static.NewLayer([]byte(altered), signedPayload),
			Annotations: map[string]string{signatureAnnotation: base64.StdEncoding.EncodeToString(signature)},
		})
		if err != nil {
			t.Fatal(err)
		}
		return image
	}},
}

// forge pushes, under another tag, what differs from the genuine one in its manifest.
func (f forgery) forge(t *testing.T, genuine, forged name.Tag) {
	t.Helper()
	found := get(t, genuine)
	manifest := map[string]any{}
	if err := json.Unmarshal(found.Manifest, &manifest); err != nil {
		t.Fatal(err)
	}
	manifest["annotations"] = map[string]string{"forged": "yes"}
	altered, err := json.Marshal(manifest)
	if err != nil {
		t.Fatal(err)
	}
	copyTag(t, genuine, forged)
	put(t, forged, manifestOf{altered, found.MediaType})
	if f.sign == nil {
		return
	}
	signature, err := remote.Image(signatureTag(genuine.Repository, found.Digest))
	if err != nil {
		t.Fatal(err)
	}
	digest := get(t, forged).Digest
	put(t, signatureTag(forged.Repository, digest), f.sign(t, signature, forged, digest))
}

// manifestOf is a manifest whose content a registry has already.
type manifestOf struct {
	raw  []byte
	kind types.MediaType
}

func (m manifestOf) RawManifest() ([]byte, error)        { return m.raw, nil }
func (m manifestOf) MediaType() (types.MediaType, error) { return m.kind, nil }

// copyTag copies what a tag names, and its signature.
func copyTag(t *testing.T, from, to name.Tag) {
	t.Helper()
	found := get(t, from)
	put(t, to, found)
	signature, err := remote.Image(signatureTag(from.Repository, found.Digest))
	if err != nil {
		t.Fatal(err)
	}
	put(t, signatureTag(to.Repository, found.Digest), signature)
}

func get(t *testing.T, tag name.Tag) *remote.Descriptor {
	t.Helper()
	found, err := remote.Get(tag)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func put(t *testing.T, tag name.Tag, what remote.Taggable) {
	t.Helper()
	if err := remote.Push(tag, what); err != nil {
		t.Fatal(err)
	}
}

func tagOf(t *testing.T, reference string) name.Tag {
	t.Helper()
	tag, err := name.NewTag(reference)
	if err != nil {
		t.Fatal(err)
	}
	return tag
}

package rabbit

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"spillway/internal/broker"
)

// authority is a certificate authority of one test.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	folder      string
	file        string // PEM of the certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{folder: t.TempDir()}
	a.key = newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.certificate, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.file = a.write(t, "ca.pem", "CERTIFICATE", der)
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (a *authority) write(t *testing.T, name, kind string, der []byte) string {
	t.Helper()
	file := filepath.Join(a.folder, name)
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// issue makes a certificate for a name, good for both ends, and returns its files.
func (a *authority) issue(t *testing.T, name string) (certFile, keyFile string) {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return a.write(t, name+".pem", "CERTIFICATE", der), a.write(t, name+".key", "EC PRIVATE KEY", keyDER)
}

func TestTLSWithClientCertificateAndServerName(t *testing.T) {
	t.Parallel()
	b := setup(t)
	trusted, other := newAuthority(t), newAuthority(t)
	certFile, keyFile := trusted.issue(t, "rabbit.test")
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(trusted.certificate)
	_, uri := newProxy(t, &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert})
	clientCert, clientKey := trusted.issue(t, "client")
	good := TLS{CAFile: trusted.file, CertFile: clientCert, KeyFile: clientKey, ServerName: "rabbit.test"}
	inURI := uri + "?" + url.Values{
		"cacertfile": {good.CAFile}, "certfile": {good.CertFile}, "keyfile": {good.KeyFile}, "server_name_indication": {good.ServerName},
	}.Encode()
	for name, row := range map[string]struct {
		uri  string
		tls  TLS
		want error
	}{
		"all right":                         {uri, good, nil},
		"all right, from the URI":           {inURI, TLS{}, nil},
		"another authority":                 {uri, TLS{CAFile: other.file, CertFile: clientCert, KeyFile: clientKey, ServerName: "rabbit.test"}, broker.ErrUnreachable},
		"another name than expected":        {uri, TLS{CAFile: trusted.file, CertFile: clientCert, KeyFile: clientKey}, broker.ErrUnreachable},
		"no client certificate":             {uri, TLS{CAFile: trusted.file, ServerName: "rabbit.test"}, broker.ErrUnreachable},
		"the system's roots do not know it": {uri, TLS{ServerName: "rabbit.test"}, broker.ErrUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := New(Config{URIs: []string{row.uri}, Vhost: b.vhost, TLS: row.tls})
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := d.Server(deadline(t)); !errors.Is(err, row.want) {
				t.Errorf("got %v, want %v", err, row.want)
			}
		})
	}
}

func TestTLSFilesThatCannotBeUsedAreRefused(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	certFile, keyFile := a.issue(t, "x")
	for name, files := range map[string]TLS{
		"no such CA file":               {CAFile: filepath.Join(a.folder, "absent")},
		"a CA file with no certificate": {CAFile: keyFile},
		"a certificate without a key":   {CertFile: certFile},
		"a key that is a certificate":   {CertFile: certFile, KeyFile: certFile},
	} {
		if _, err := New(Config{URIs: []string{"amqps://localhost"}, TLS: files}); !errors.Is(err, ErrBadTLS) {
			t.Errorf("%s: broker: %v", name, err)
		}
		if _, err := NewManagement(ManagementConfig{URL: "https://localhost", TLS: files}); !errors.Is(err, ErrBadTLS) {
			t.Errorf("%s: management: %v", name, err)
		}
	}
}

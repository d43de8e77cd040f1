package postgres_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"spillway/internal/postgres"
)

func TestTLSByTheAddress(t *testing.T) {
	t.Parallel()
	certificate, ca := selfSigned(t)
	_, otherCA := selfSigned(t)
	uri := fakeTLSServer(t, certificate)
	t.Run("a server that the CA vouches for is taken", func(t *testing.T) {
		t.Parallel()
		db, err := postgres.Open(t.Context(), postgres.Config{URI: uri + "?sslmode=verify-full&sslrootcert=" + ca})
		if err != nil {
			t.Fatal(err)
		}
		db.Close()
	})
	t.Run("a server that the CA does not know is not reached", func(t *testing.T) {
		t.Parallel()
		wantRefusal(t, uri+"?sslmode=verify-full&sslrootcert="+otherCA, postgres.ErrUnreachable, "x509")
	})
}

// selfSigned makes a certificate for 127.0.0.1 and returns it, with the path of a file that vouches for it.
func selfSigned(t *testing.T) (certificate tls.Certificate, caFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	caFile = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(caFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, caFile
}

// fakeTLSServer is fakeServer behind TLS, with a version that is taken. It returns the address without parameters.
func fakeTLSServer(t *testing.T, certificate tls.Certificate) string {
	t.Helper()
	l := listen(t)
	serve(t, l, func(conn net.Conn) {
		if _, err := pgproto3.NewBackend(conn, conn).ReceiveStartupMessage(); err != nil { // the request for TLS
			_ = conn.Close()
			return
		}
		_, _ = conn.Write([]byte("S"))
		greet(tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}), version("18.0"))
	})
	return "postgres://u:hush@" + l.Addr().String() + "/d"
}

package link

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"fmt"
	"math/big"
	"time"
)

// The certificates bind a connection to the key and to a node's name; they don't expire,
// because a node's own lasts as long as its process, and clocks may be wrong.
var (
	validFrom  = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	validUntil = time.Date(2120, 1, 1, 0, 0, 0, 0, time.UTC)
)

// certificates returns the TLS configuration of a node, as server and as client.
func (k *Key) certificates(node string) (*tls.Config, error) {
	authority := k.authority()
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "switchboard cluster " + k.Fingerprint()},
		NotBefore: validFrom, NotAfter: validUntil,
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, ca, ca, authority.Public(), authority)
	if err == nil {
		ca, err = x509.ParseCertificate(raw)
	}
	if err != nil {
		return nil, fmt.Errorf("make the certificate of the cluster: %w", err)
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of this node: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("make the certificate of this node: %w", err)
	}
	leaf := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: node}, DNSNames: []string{hostOf(node)},
		NotBefore: validFrom, NotAfter: validUntil, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	raw, err = x509.CreateCertificate(rand.Reader, leaf, ca, public, authority)
	if err != nil {
		return nil, fmt.Errorf("make the certificate of this node: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(ca)
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{{Certificate: [][]byte{raw}, PrivateKey: private}},
		RootCAs: pool, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
		SessionTicketsDisabled: true, NextProtos: []string{"http/1.1"},
	}, nil
}

// hostOf is the name in the certificate of a node.
func hostOf(node string) string {
	sum := sha256.Sum256([]byte(node))
	return hex.EncodeToString(sum[:16]) + ".node.switchboard"
}

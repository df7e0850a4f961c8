// Checks a checkpoint and the inclusion of a leaf with the libraries of Go's checksum database.
package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

type proof struct {
	Note, Leaf string
	Keys, Path []string
	Index      int64
}

func hash(text string) (made tlog.Hash) {
	raw, err := hex.DecodeString(text)
	if err != nil || copy(made[:], raw) != tlog.HashSize {
		log.Fatal("no hash: ", text)
	}
	return made
}

func main() {
	var given proof
	if err := json.NewDecoder(os.Stdin).Decode(&given); err != nil {
		log.Fatal(err)
	}
	var known []note.Verifier
	for _, key := range given.Keys {
		verifier, err := note.NewVerifier(key)
		if err != nil {
			log.Fatal(err)
		}
		known = append(known, verifier)
	}
	opened, err := note.Open([]byte(given.Note), note.VerifierList(known...))
	if err != nil {
		log.Fatal(err)
	}
	lines := strings.Split(opened.Text, "\n")
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil {
		log.Fatal(err)
	}
	root, err := base64.StdEncoding.DecodeString(lines[2])
	if err != nil {
		log.Fatal(err)
	}
	var path tlog.RecordProof
	for _, sibling := range given.Path {
		path = append(path, hash(sibling))
	}
	leaf, signed := hash(given.Leaf), hash(hex.EncodeToString(root))
	if err := tlog.CheckRecord(path, size, signed, given.Index, leaf); err != nil {
		log.Fatal(err)
	}
	fmt.Println(lines[0], len(opened.Sigs))
}

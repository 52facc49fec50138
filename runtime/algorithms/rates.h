// What a system can do, as far as an algorithm's cost formula cares. Equal on all ranks: measured
// by `bitrail tune` or taken from the topology, never from a rank's own view.
//
// Times in microseconds, sizes in bytes (of pack and unpack: elements).
#pragma once

namespace bitrail::algorithms {

struct Link {
  double alpha = 0;  // a message's way, both ends' work included
  double beta = 0;   // a byte
};

struct Rates {
  Link node;           // between two ranks of a node, one rank sending
  double memory = 0;   // a byte between ranks of a node when all send at once (they share memory
                       // and cores); at least node.beta
  Link network;        // between nodes, through one port in one direction
  int ports = 1;       // of a node that carry traffic; its ranks share them
  double message = 0;  // of a rank's processor, for each message it sends or takes
  double reduce = 0;   // a byte of each source of a sum
  double pack = 0;     // an element: scale, signs and the error they leave
  double unpack = 0;   // an element of each source
  double cores = 1;    // of a node, for all of its ranks: compute slows down when ranks outnumber
                       // them
};

}  // namespace bitrail::algorithms
